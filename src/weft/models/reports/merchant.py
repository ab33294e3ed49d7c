"""Three packagings of a fat tree of merchant silicon, as `weft cost merchant` tells it."""

from dataclasses import dataclass
from typing import Any

from weft.errors import BadInput
from weft.models import merchant as model
from weft.models.cabling import fibre
from weft.models.reports.answer import Answer, Prices
from weft.models.tables import columns, show
from weft.parameters import like
from weft.topology.cabling import Wiring
from weft.units import param, show_rate

STEP = (
    "pods", "ports", "core_cards", "core_modules", "oversubscription", "cables", "cables_to_move", "dollars", "watts",
    "rack_units",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Merchant:
    """Three packagings of a fat tree of merchant silicon: parts, dollars, watts, space, cables."""

    ports: int | None = param(None, "ports of the full switch, k^3/4")
    radix: int | None = like(
        model.Switch, "radix", default=None, help="ports of a switch chip, a multiple of 8; 24 unless given"
    )
    pods: int | None = like(model.Switch, "pods")
    line_cards: int | None = like(model.Switch, "line_cards")
    uplink_cards: int | None = like(model.Switch, "uplink_cards")
    core_cards: int | None = like(model.Switch, "core_cards")
    deploy: bool = param(False, "the steps from one pod to the full switch")
    wiring: str | None = param(None, "check the cables in this CSV file against the wiring rule", metavar="FILE")
    write_wiring: str | None = param(None, "write the right wiring into this CSV file", metavar="FILE")

    def answer(self, prices: Prices) -> Answer:
        """The three networks, the steps of growth, what is wrong with a wiring, or a printed table."""
        catalogue = prices.shelf(model.CATALOGUE)
        if table := prices.printed(model, "merchant", catalogue):
            return table
        radix = self._radix()
        cards = {name: getattr(self, name) for name in ("pods", "line_cards", "uplink_cards", "core_cards")}
        nets = {n: model.Switch(radix=radix, network=n, **cards) for n in model.NETWORKS}
        if self.write_wiring is not None:
            Wiring.right(radix, nets[3].pods, self.core_cards).save(self.write_wiring)
        if self.wiring is not None:
            return _wiring(Wiring.load(self.wiring, radix, self.core_cards), nets[3].link)
        prices.draw("merchant", radix=radix, catalogue=catalogue)
        return _growth(radix, catalogue) if self.deploy else _networks(nets, radix, catalogue)

    def _radix(self) -> int:
        if self.ports is None:
            return 24 if self.radix is None else self.radix
        if self.radix is not None:
            raise BadInput(f"ports must be given without radix, not with radix {self.radix}")
        return model.Switch.of_ports(self.ports).radix


def _networks(nets, radix, catalogue) -> Answer:
    any_net, networks, counted = nets[3], [], []
    for n, net in nets.items():
        bill = net.chips_and_optics()
        cabling = fibre(net, chassis=4 * radix**2 / 4 / model.POD_PORTS)
        sums = (catalogue.price(bill), catalogue.watts(bill), catalogue.rack_units(net.boxes()), net.long_cables)
        networks.append(
            {
                "network": n,
                "name": model.NETWORKS[n],
                "parts": dict(net.parts()),
                **dict(zip(("dollars", "watts", "rack_units", "long_cables"), sums, strict=True)),
                "switch_links": net.switch_links,
                "cabling": cabling,
            }
        )
        counted.append((*sums, cabling["metres"], cabling["kg"], *(bill[part] for part in model.CHIPS)))
    notes = [f"fitted: {line}" for line in catalogue.fitted(nets[1].chips_and_optics())]
    if radix != 24:
        notes.append(
            f"assumed: a {radix}-port chip at the price and watts of a 24-port ASIC (say --price ASIC=... and "
            "--watts ASIC=...), boxes as dense as 24-port ones"
        )
    notes.append("assumed: a floor of 10 racks in a row, hosts of one unit, 1.5 m up to the tray")
    notes.append("dollars and watts: chips and optics only, as the paper counts")
    data = {
        "paper": "merchant",
        "radix": radix,
        "ports": any_net.ports,
        "pods": any_net.pods,
        "midplane": any_net.midplane,
        "bisection_bps": any_net.bisection,
        "oversubscription": any_net.oversubscription,
        "networks": networks,
        "notes": notes,
    }
    names = ("dollars", "watts", "rack units", "long cables", "metres of them", "kg of fibre", *model.CHIPS)
    lines = [(name, *(show(column[i]) for column in counted)) for i, name in enumerate(names)]
    head = (
        f"merchant silicon, {radix}-port chips: {any_net.ports:,} ports in {any_net.pods} pods, "
        f"{show_rate(int(any_net.bisection))} of bisection, oversubscribed {any_net.oversubscription:g}:1"
    )
    table = columns(("", *(f"{n}: {what}" for n, what in model.NETWORKS.items())), lines, right=(1, 2, 3))
    return Answer(data=data, text="\n".join([head, "", table, "", *notes]))


def _growth(radix, catalogue) -> Answer:
    steps: list[dict[str, Any]] = []
    before = None
    for step in model.growth(radix):
        bill = step.chips_and_optics()
        steps.append(
            {
                "pods": step.pods,
                "ports": step.ports,
                "line_cards": step.line_cards,
                "uplink_cards": step.uplink_cards,
                "core_cards": step.core_cards,
                "core_modules": step.modules,
                "oversubscription": step.oversubscription,
                "bisection_bps": step.bisection,
                "cables": step.long_cables,
                "cables_to_move": 0 if before is None else model.moved_cables(before, step),
                "dollars": catalogue.price(bill),
                "watts": catalogue.watts(bill),
                "rack_units": catalogue.rack_units(step.boxes()),
            }
        )
        before = step
    head = [name.replace("_", " ") for name in STEP]
    text = columns(head, [[show(step[name]) for name in STEP] for step in steps], right=range(len(STEP)))
    return Answer(data={"paper": "merchant", "radix": radix, "steps": steps}, text=text)


def _wiring(wiring, link) -> Answer:
    report = wiring.check()
    lost, left = report.lost * link, report.bisection * link
    data = {
        "faults": report.faults,
        "harmless": report.harmless,
        "lost_bps": lost,
        "bisection_bps": left,
        "exact": report.exact,
        "worst_split": report.left,
    }
    bound = "" if report.exact else "at least "
    words = [*report.faults, *report.harmless] or ["no fault found"]
    words.append(f"bisection in one direction: {show_rate(left)}, lost: {bound}{show_rate(lost)}")
    return Answer(data=data, text="\n".join(words))
