"""Numbers that a text states are points in the picture, at their places, and no line joins them."""

import pytest

from weft.papers import figure
from weft.papers.marks import TEXT, marks_only, said
from weft.papers.tdma import APART
from weft.report.plots import plot

SMALL = {  # figure -> a table to draw, and (name, x, y) of every printed point
    "fpga/depth": (
        [{"name": "gcq", "ports": 32, "load": load, "depth": 9} for load in (0.5, 0.99)],
        [(said("islip"), 0.5, 40), (said("islip"), 0.99, 40), (said("gcq"), 0.5, 16), (said("gcq"), 0.99, 16)],
    ),
    "merchant/growth": (
        [{"step": "pods", "ports": 144, "max_flow_tbps": 1.4}, {"step": "core cards", "ports": 3456}],
        [(TEXT, 144, 1.44), (TEXT, 3456, 34.56)],
    ),
    "merchant/overhead": (
        [{"frame": 64, "share_percent": 1, "needs_percent": 0, "tag_needs_percent": 4}], [(TEXT, 1518, 1.6)],
    ),
    "shoal/baselines": (
        [{"reading": "DCTCP", "nodes": 64, "load": 0.6, "tail_over_shoal": 2.0}],
        [(said("DCTCP"), 0.2, 3), (said("DCTCP"), 1.0, 2), (said("DCQCN"), 0.2, 3), (said("DCQCN"), 1.0, 2),
         (said("NDP"), 0.2, 1.5), (said("NDP"), 1.0, 2)],
    ),
    "stardust/7": (
        [{"a_gbps": 100, "b_gbps": 66}, {"a_gbps": 100, "b_gbps": 99}],
        [(said("port B"), 0, 66), (said("port A"), 1, 100), (said("port B"), 1, 100)],
    ),
    "stardust/12": (
        [{"a_gbps": 100, "b_gbps": 1}, {"a_gbps": 100, "b_gbps": 99}],
        [(said("port A"), 0, 100), (said("port B"), 0, 0), (said("port A"), 1, 100), (said("port B"), 1, 100)],
    ),
    "stardust/10a": ([{"system": "DCTCP", "share": 50, "printed": 49}], [(TEXT, 0, 49)]),
    "stardust/incast": ([{"at_a_source_mb": 0.97, "at_the_port_mb": 0.1}], [(TEXT, 0, 0.99)]),
    "tdma/7": (
        [{"system": name, "progress": [(1.0, 0.5, 1.0)]} for name in ("TDMA", APART)],
        [(said("TDMA"), 194 / 184, 1), (said("TCP"), 225 / 184, 1)],
    ),
    "tdma/8": (
        [{"system": name, "progress": [(1.0, 0.5, 1.0)]} for name in ("TDMA", APART)],
        [(said("TDMA"), 1075 / 1024, 1), (said("TCP"), 1225 / 1024, 1)],
    ),
    "tdma/10": (
        [{"offset_us": at, "mean_us": 30, "most_us": 40} for at in (0, 50)],
        [(f"mean over all: {TEXT}", 0, 26), (f"mean over all: {TEXT}", 50, 26)],
    ),
    "tdma/11": (
        [{"system": "TDMA", "block_kb": 10, "gbps": 5.0, "bound_gbps": 8.0}], [(f"TCP at best: {TEXT}", 10, 4.5)],
    ),
    "tdma/pause": (
        [{"signal": "802.3x, NIC", "packet": 64, "mean_us": 4}],
        [(said("802.3x, NIC, least"), 64, 2), (said("802.3x, NIC, most"), 64, 6),
         (said("PFC, software, least"), 64, 100), (said("PFC, software, most"), 64, 200)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SMALL)
def test_what_the_text_states_is_drawn_at_its_place(name):
    table, printed = SMALL[name]
    drawn = figure(name).draw(table)
    lines = {line.get_label(): line for axes in drawn.figure.axes for line in axes.lines}
    found = [(of, float(x), float(y)) for of, line in lines.items() if TEXT in of
             for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)]  # fmt: skip
    assert sorted(found) == sorted((of, float(x), float(y)) for of, x, y in printed)
    joined = [of for of, line in lines.items() if TEXT in of and len(line.get_xdata()) > 1
              and line.get_linestyle() != "None"]  # fmt: skip
    assert not joined


def test_fig_15_draws_the_papers_factors_over_our_shoal():
    table = [
        {"system": "Shoal", "nodes": 64, "load_50": load, "p99.9_us": 20.0, "goodput_gbps": 34.0} for load in (0.2, 1.0)
    ]
    tail, goodput = figure("shoal/15").draw(table).figure.axes
    seen = {line.get_label(): line.get_ydata().tolist() for line in tail.lines}
    assert seen["DCTCP: the paper's factor, our Shoal"] == [60, 40]
    assert seen["NDP: the paper's factor, our Shoal"] == [30, 40]
    assert {tuple(line.get_ydata().tolist()) for line in goodput.lines} == {(34, 34), (20, 20)}


def test_marks_have_no_line_and_the_others_keep_theirs():
    rows = [{"x": x, "y": x, "of": of} for x in (1, 2) for of in ("ours", TEXT)]
    drawn = marks_only(plot(rows, x="x", y="y", by="of"), TEXT)
    styles = {line.get_label(): line.get_linestyle() for line in drawn.figure.axes[0].lines}
    assert styles[TEXT] == "None" and styles["ours"] != "None"
