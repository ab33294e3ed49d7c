"""Merchant silicon, §IV-F: bisection bandwidth at every step of deployment, by max-flow over the chips' links."""

from weft.fabrics.merchant.boards import Boards
from weft.models.merchant import Switch, growth
from weft.papers import Claim, Series, at_paper_scale
from weft.papers.marks import TEXT, marks_only
from weft.units import Gbps, Tbps

COLUMNS = ("step", "pods", "uplink_cards", "core_cards", "ports", "max_flow_tbps", "model_tbps", "oversubscription")
SERIES = (Series("ports", "max_flow_tbps", "step"), Series("ports", "oversubscription", "step"))
RADIX = 24
PRINTED = {144: 1.44, 3456: 34.56}  # ports -> Tb/s: a pod, and all


def table(scale="small"):
    """A row per deployment: pods one by one, uplink cards of one pod, core cards under all pods, and one module."""
    every = at_paper_scale(scale)
    pods = range(1, RADIX + 1) if every else (1, 2, 12, 13, 24)
    rows = [_row("pods", switch) for switch in growth(RADIX) if switch.pods in pods]
    rows += [_row("uplink cards", Switch(pods=1, uplink_cards=n)) for n in range(1, RADIX // 4 + 1)]
    rows += [_row("core cards", Switch(core_cards=n)) for n in (range(1, 19) if every else (1, 6, 9, 12, 18))]
    return rows + [_row("one module", Switch(pods=n, core_cards=9)) for n in (12, 13)]


def _row(step, switch):
    found = Boards.of(switch).bisection()
    return {
        "step": step,
        "pods": switch.pods,
        "uplink_cards": switch.uplink_cards,
        "core_cards": switch.core_cards,
        "ports": switch.ports,
        "max_flow_tbps": found / Tbps,
        "model_tbps": switch.bisection / Tbps,
        "oversubscription": switch.ports * 10 * Gbps / found,
    }


def draw(table):
    """Bandwidth by max-flow against ports, pod by pod, and against a line of 10 Gb/s each."""
    from weft.report.plots import plot

    shown = [row for row in table if row["step"] in ("pods", "one module")]  # cards alone add no ports
    rows = [{"ports": row["ports"], "tbps": row["max_flow_tbps"], "of": row["step"]} for row in shown]
    rows += [{"ports": row["ports"], "tbps": row["ports"] / 100, "of": "10 Gb/s a port"} for row in table]
    rows += [{"ports": ports, "tbps": tbps, "of": TEXT} for ports, tbps in PRINTED.items()]
    drawn = plot(rows, x="ports", y="tbps", by="of", yscale="linear", title="Bisection bandwidth of deployments")
    return marks_only(drawn, TEXT)


def _pick(table, step, **at):
    return [row for row in table if row["step"] == step and all(row[name] == value for name, value in at.items())]


def _full(table):
    (full,), (pod,) = _pick(table, "pods", pods=24), _pick(table, "pods", pods=1)
    said = f"{full['max_flow_tbps']:g} Tb/s over {full['ports']:,} ports, {pod['max_flow_tbps']:g} Tb/s in a pod"
    return (full["max_flow_tbps"], pod["max_flow_tbps"]) == (34.56, 1.44), said


def _module(table):
    (twelve,), (thirteen,) = _pick(table, "one module", pods=12), _pick(table, "one module", pods=13)
    said = f"oversubscribed {twelve['oversubscription']:g} times with 12 pods, {thirteen['oversubscription']:g} with 13"
    return twelve["oversubscription"] == 1 < thirteen["oversubscription"], said


def _shares(table):
    cards = [row["max_flow_tbps"] / row["uplink_cards"] for row in _pick(table, "uplink cards")]
    core = [row["max_flow_tbps"] / row["core_cards"] for row in _pick(table, "core cards")]
    even = max(cards) - min(cards) < 1e-9 and max(core) - min(core) < 1e-9
    said = f"every uplink card adds {cards[0]:g} Tb/s to a pod, every core card {core[0]:g} Tb/s to the switch"
    return even and round(1.44 / cards[0]) == 6 and round(34.56 / core[0]) == 18, said


CLAIMS = [
    Claim("merchant.c07", "3,456 ports of 10GbE give 34.56 Tb/s, a single pod 1.44 Tb/s", _full, scaled=False),
    Claim("merchant.c14", "one core module supports up to 12 pods with no oversubscription", _module, scaled=False),
    Claim(
        "merchant.c14",
        "an uplink card is 1/6 of a pod's bandwidth, a core card 1/18 of the core's",
        _shares,
        scaled=False,
    ),
]
