"""Shoal, Fig. 10: completion times of a 7:1 incast of seven cells each in the 8-node prototype."""

from weft.papers import Claim, Series, at_paper_scale
from weft.papers.marks import TEXT, marks_only
from weft.papers.shoal import near, printed, prototype
from weft.study import Study
from weft.units import us
from weft.workload import Incast

COLUMNS = ("rules", "flow", "fct_us", "slots", "max_queue")
SERIES = (Series("flow", "fct_us", "rules"),)
SIZE = 448  # "448 B (seven 64 B cells)": the text sets no header apart, nor do we here
NAMES = {  # (rules, age interval, whether cells travel)
    ("paper", None, True): "our rules",
    ("paper", 0, True): "our rules, no selective release",
    ("paper", None, False): "our rules, travel added afterwards",
    ("released", 7, False): "authors' simulator, selective release on",
    ("released", 0, False): "authors' simulator, selective release off",
}
OURS = NAMES["paper", None, True]
EXACT = 0.01  # the text's 3.76 + 2 x 1.57 us is 6.9 to two digits


def study(scale="small"):
    """One incast under five sets of rules; the authors' simulator knows no travel time, so it is added afterwards.

    Our rules are run so as well: 3.76 us of queueing and twice 1.57 us of propagation is how the text adds up.
    """
    at_paper_scale(scale)  # the prototype is small: both scales are the same
    fabrics = [
        prototype(header=0),
        prototype(header=0, age_interval=0),
        prototype(header=0, path=0),
        prototype(header=0, path=0, rules="released", age_interval=7),
        prototype(header=0, path=0, rules="released", age_interval=0),
    ]
    return Study(fabrics=fabrics, workloads=[Incast(fan_in=7, bytes=SIZE)], seeds=[1], title="Shoal, Fig. 10")


def measure(runs):
    """A row per flow, fastest first: completion time in us and in slots, travel left out of the slots."""
    table, fabric = [], prototype()
    travel = 2 * fabric.way  # out and on
    for row, result in zip(runs.rows, runs.results, strict=True):
        travels = row["fabric.path"] != 0
        for rank, time in enumerate(result.fct().values.tolist(), 1):
            total = time + (0 if travels else travel)
            table.append({
                "rules": NAMES[row["fabric.rules"], row["fabric.age_interval"], travels],
                "flow": rank,
                "fct_us": total / us,
                "slots": (total - travel) / fabric.slot_time,
                "max_queue": row["queue_cells.max"],
            })  # fmt: skip
    return table


def draw(table):
    """The seven flows by rank, and the two ends that the text states; without selective release ours are the same."""
    from weft.report.plots import plot

    said = printed("fig10")
    ends = ((1, said["fastest_us"]), (7, said["slowest_us"]))
    rows = [row for row in table if row["rules"] != NAMES["paper", 0, True]]
    rows += [{"flow": rank, "fct_us": time, "rules": TEXT} for rank, time in ends]
    rows = [{**row, "flow, fastest first": row["flow"]} for row in rows]
    title = "Fig. 10: prototype, 7:1 incast of seven cells"
    return marks_only(plot(rows, x="flow, fastest first", y="fct_us", by="rules", yscale="linear", title=title), TEXT)


def _ends(rules, added):
    def check(table):
        times = [row["fct_us"] for row in table if row["rules"] == rules]
        slots = [row["slots"] for row in table if row["rules"] == rules]
        said = printed("fig10")
        good = near(min(times), said["fastest_us"], EXACT) and near(max(times), said["slowest_us"], EXACT)
        holds = "consistent" if good and added else good  # travel was added by hand
        return holds, f"{min(times):.3f} to {max(times):.3f} us, {min(slots):.0f} to {max(slots):.0f} slots of queueing"

    return check


def _queue(table):
    seen = {row["rules"]: row["max_queue"] for row in table}
    good = seen[OURS] == printed("fig10")["queue_cells"]
    return good, f"{', '.join(f'{cells} ({rules})' for rules, cells in seen.items())}; eq. (5) allows 8"


RANGE = "completion takes 6.05 to 6.9 us, of which 3.76 us are queueing"
CLAIMS = [
    *(
        Claim("shoal.c24", f"{RANGE}: {name}", _ends(name, not travels), scaled=False)
        for (_, _, travels), name in NAMES.items()
    ),
    Claim("shoal.c24", "queues towards the destination grow up to a maximum of 7", _queue, scaled=False),
]
