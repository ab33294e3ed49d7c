"""What a question is asked with, and what an answer is."""

from dataclasses import dataclass
from typing import Any

from weft.errors import BadInput
from weft.models import tables
from weft.models.parts import Catalogue
from weft.units import param


@dataclass(frozen=True, kw_only=True)
class Answer:
    """An answer as data, and as a text for a reader."""

    data: dict[str, Any]
    text: str


@dataclass(frozen=True, kw_only=True)
class Overrides:
    """Prices and watts of the user's own."""

    catalogue: tuple[str, ...] = param((), "a TOML file that overrides or adds", metavar="FILE")
    price: tuple[str, ...] = param((), "another price, as in SFP+=100", metavar="PART=PRICE")
    watts: tuple[str, ...] = param((), "other watts, as in SFP+=1.5", metavar="PART=WATTS")

    @property
    def changes(self) -> list[tuple[str, dict[str, float]]]:
        """(part, its new price or watts) of every single number given."""
        given = [("price", text) for text in self.price] + [("watts", text) for text in self.watts]
        return [_assignment(field, text) for field, text in given]


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """What is drawn."""

    plot: str | None = param(
        None, "draw a picture into this svg, pdf or png, and its numbers as csv beside it", metavar="FILE"
    )

    def draw(self, what: str, **given) -> None:
        """Draw the picture of a model, if one was asked for."""
        if self.plot is not None:
            from weft.models import plots

            plots.draw(what, self.plot, **given)


@dataclass(frozen=True, kw_only=True)
class Catalogues(Drawn):
    """Prices and watts of the user's own, as files only: systems side by side have no part in common to be named."""

    catalogue: tuple[str, ...] = param((), "a TOML file that overrides or adds", metavar="FILE")


@dataclass(frozen=True, kw_only=True)
class Prices(Drawn, Overrides):
    """Where prices and watts come from, and what is shown of them."""

    table: str | None = param(None, "a printed table with ours beside it, such as VII; or all")

    def shelf(self, name: str) -> Catalogue:
        """The catalogue `name` with the user's own on top."""
        catalogue = Catalogue.named(name)
        for path in self.catalogue:
            mine = Catalogue.load(path)
            # Shoal's paper counts in packet switches; a user may well count in dollars
            catalogue = catalogue | mine if name == "shoal-2019" else catalogue.under(mine)
        for part, values in self.changes:
            catalogue = catalogue.change(part, **values)
        return catalogue

    def printed(self, model, paper: str, catalogue: Catalogue) -> Answer | None:
        """The printed table that was asked for, or all of them; None if none was."""
        if self.table is None:
            return None
        own = Catalogue.named(model.CATALOGUE).currency
        if catalogue.currency != own:
            raise BadInput(f"table must be asked for with prices in {own}, not in {catalogue.currency}")
        if self.table == "all":
            found = [model.table(key, catalogue) for key in tables.printed(paper)]
            data = {"paper": paper, "tables": [one.as_json() for one in found]}
            return Answer(data=data, text="\n\n".join(map(str, found)))
        one = model.table(self.table, catalogue)
        return Answer(data=one.as_json(), text=str(one))


def _assignment(field, text) -> tuple[str, dict[str, float]]:
    part, _, number = text.rpartition("=")
    try:
        value = float(number)
    except ValueError:
        part = ""
    if not part:
        raise BadInput(f"{field} must look like SFP+=100, not {text!r}")
    return part, {field: value}
