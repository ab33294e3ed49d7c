"""Every fabric that can serve so many hosts, side by side, as `weft cost compare` tells it."""

from dataclasses import dataclass
from typing import ClassVar

from weft.models.compare import MEASURES
from weft.models.compare import compare as side_by_side
from weft.models.parts import Catalogue
from weft.models.reports.answer import Answer, Catalogues
from weft.models.tables import columns, numbered, show
from weft.units import param, show_rate

WORDS = tuple(measure.replace("_", " ") for measure in MEASURES)


@dataclass(frozen=True, kw_only=True)
class Compare:
    """Every fabric that can serve so many hosts, side by side."""

    hosts: int = param(512, "hosts to serve")

    asked_with: ClassVar = Catalogues

    def answer(self, prices: Catalogues) -> Answer:
        """One line per fabric, in all, per host and per Gb/s of bisection."""
        extra = None
        for path in prices.catalogue:
            mine = Catalogue.load(path)
            extra = mine if extra is None else extra | mine
        entries, cannot = side_by_side(self.hosts, extra)
        prices.draw("compare", entries=entries)
        marks, feet = numbered(entry.notes for entry in entries)
        lines = [
            (
                entry.name,
                show_rate(entry.link),
                show_rate(int(entry.bisection)),
                *("" if getattr(entry, what) is None else show(getattr(entry, what)) for what in MEASURES),
                mark,
            )
            for entry, mark in zip(entries, marks, strict=True)
        ]
        head = ("", "link", "bisection", *WORDS, "notes")
        text = [
            f"{self.hosts:,} hosts; a blank is what nobody has printed",
            "",
            columns(head, lines, right=range(1, 7)),
        ]
        for title, share in (("per host", "per_host"), ("per Gb/s of bisection", "per_gbps")):
            rows = [(entry.name, *(_short(getattr(entry, share)(what)) for what in MEASURES)) for entry in entries]
            text += ["", title, "", columns(("", *WORDS), rows, right=range(1, 5))]
        text += ["", *feet]
        text += [f"{name}: cannot serve {self.hosts:,} hosts, {reason}" for name, reason in cannot.items()]
        text.append("prices are of different years and rates: compare within a paper first")
        data = {"hosts": self.hosts, "fabrics": [entry.as_json() for entry in entries], "cannot": cannot}
        return Answer(data=data, text="\n".join(text))


def _short(value) -> str:
    return "" if value is None else f"{value:.4g}"
