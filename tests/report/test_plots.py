import csv
import io
import os
import subprocess
import sys
from dataclasses import replace

import matplotlib
import numpy as np
import pytest

from weft.errors import BadInput, WeftError
from weft.report import plots


def table(path):
    return list(csv.DictReader(io.StringIO(path.read_text())))


@pytest.mark.parametrize("form, magic", [("svg", b"<?xml"), ("pdf", b"%PDF"), ("png", b"\x89PNG")])
def test_a_picture_has_its_numbers_beside_it(rows, tmp_path, form, magic):
    made = plots.plot(rows, x="load", y="fct.p99", by="fabric").save(tmp_path / "deep" / f"fct.{form}")
    assert made.read_bytes().startswith(magic)
    assert len(table(tmp_path / "deep" / "fct.csv")) == 4
    assert sorted(os.listdir(tmp_path / "deep")) == ["fct.csv", f"fct.{form}"]


def lines(count, least=6.0):
    return [
        {"x": x, "y": least + 0.1 * x, "who": f"somebody with a long name, {k}"} for k in range(count) for x in (1, 2)
    ]


def test_a_legend_beside_the_axes_makes_the_picture_wider_and_not_the_axes_narrower():
    few, many = (plots.plot(lines(count), x="x", y="y", by="who").figure for count in (4, 5))
    assert many.get_figwidth() > few.get_figwidth() + 1.5
    for one in (few, many):
        one.draw_without_rendering()
    widths = [one.axes[0].get_position().width * one.get_figwidth() for one in (few, many)]
    assert widths[1] == pytest.approx(widths[0], abs=0.2)


def test_marks_near_the_top_of_an_axis_that_begins_at_0_have_room():
    low, high = plots.plot(lines(1), x="x", y="y", by="who").figure.axes[0].get_ylim()
    assert low == 0 and high == pytest.approx(1.05 * 6.2)


def test_an_interval_below_0_ends_where_a_logarithmic_axis_does():
    rows = [{"x": x, "y": y} for x, y in ((1, 9.0), (1, 11.0), (2, 1.0), (2, 999.0))]
    made = plots.plot(rows, x="x", y="y", yscale="log", band="ci95")
    drawn = made.figure.axes[0].collections[0].get_paths()[0].vertices[:, 1]
    assert min(p["min"] for p in made.data) < 0 < drawn.min() == made.figure.axes[0].get_ylim()[0]


def test_runs_that_differ_in_seed_become_one_point_with_a_range(rows):
    made = plots.plot(rows, x="load", y="fct.p99", by="fabric")
    first = made.data[0]
    own = [row["fct_us.all.p99"] for row in rows[:3]]
    assert first == {
        "y": "fct_us.all.p99", "fabric.kind": "Ring", "workload.load": 0.2,
        "mean": pytest.approx(np.mean(own)), "min": min(own), "max": max(own), "runs": 3,
    }  # fmt: skip
    ax = made.figure.axes[0]
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["Ring", "Star"]
    assert ax.get_legend().get_title().get_text() == "mean and range of 3 runs"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("load", "flow completion time, p99 (µs)")


def test_runs_in_which_y_does_not_exist_are_left_out(rows):
    gone = [{**row, "fct_us.all.p99": None} if row["workload.load"] == 0.8 else row for row in rows]
    assert {p["workload.load"] for p in plots.plot(gone, x="load", y="fct.p99", by="fabric").data} == {0.2}
    nowhere = [{**row, "fct_us.all.p99": None} for row in rows]
    with pytest.raises(BadInput) as found:
        plots.plot(nowhere, x="load", y="fct.p99")
    assert str(found.value) == "at least one run must have both workload.load and fct_us.all.p99, not none"


def test_an_axis_of_names_keeps_their_order(rows):
    made = plots.plot(rows, x="fabric", y="goodput")
    assert [t.get_text() for t in made.figure.axes[0].get_xticklabels()] == ["Ring", "Star"]


def test_an_average_over_more_than_seeds_says_so(rows):
    mixed = [{**row, "fabric.nodes": 4 + k % 2} for k, row in enumerate(rows)][:-1]
    legend = plots.plot(mixed, x="load", y="fct.p99", by="fabric").figure.axes[0].get_legend()
    assert legend.get_title().get_text() == "mean and range of 2 to 3 runs,\ndiffering in nodes"


def test_lines_named_by_numbers_say_of_what(rows):
    legend = plots.plot(rows, x="seed", y="fct.p99", by="load").figure.axes[0].get_legend()
    assert [t.get_text() for t in legend.get_texts()] == ["load 0.2", "load 0.8"]


def test_no_two_of_the_first_49_lines_look_alike():
    looks = [plots.line_style(k) for k in range(49)]
    assert len({repr(sorted(look.items())) for look in looks}) == 49
    assert len({(look["color"], look["linestyle"]) for look in looks}) == 49  # without their marks, too
    assert len({look["color"] for look in looks[:7]}) == len({look["marker"] for look in looks[:7]}) == 7


def test_the_eighth_line_is_drawn_unlike_the_first():
    rows = [{"x": x, "y": 2 + x, "of": f"line {k}"} for k in range(9) for x in (1, 2)]
    lines = plots.plot(rows, x="x", y="y", by="of").figure.axes[0].lines
    first, eighth = lines[0], lines[7]
    assert first.get_color() == eighth.get_color()
    assert (first.get_marker(), first.get_linestyle()) != (eighth.get_marker(), eighth.get_linestyle())
    assert eighth.get_markerfacecolor() == "white"


def test_a_cdf_of_no_finished_flow_is_an_empty_picture(result, tmp_path):
    made = plots.fct_cdf(result, larger_than=10**12)
    made.save(tmp_path / "a.svg")
    assert made.data == [] and (tmp_path / "a.csv").read_text() == "\n"


def test_an_empty_table_gets_a_sentence():
    with pytest.raises(BadInput) as found:
        plots.plot([], x="load", y="fct.p99")
    assert str(found.value) == "a table of runs must be at least one run, not 'empty'"


def test_wide_ranges_get_a_logarithmic_axis_unless_told_otherwise(rows):
    wide = [{**row, "fct_us.all.p99": 10.0 ** (4 * row["workload.load"])} for row in rows]
    assert plots.plot(wide, x="load", y="fct.p99").figure.axes[0].get_yscale() == "log"
    assert plots.plot(wide, x="load", y="fct.p99", yscale="linear").figure.axes[0].get_yscale() == "linear"
    assert plots.plot(rows, x="load", y="fct.p99").figure.axes[0].get_yscale() == "linear"


def test_two_panels_show_short_and_long_flows(rows):
    made = plots.fct_and_goodput(rows, tail="p99.9", title="both")
    assert [ax.get_ylabel() for ax in made.figure.axes] == ["completion time, p99.9 (µs)", "goodput, mean (Gb/s)"]
    assert {p["y"] for p in made.data} == {"fct_us.short.p99.9", "goodput_gbps.long.mean"}


def test_the_cdf_ends_at_one_and_the_tail_above_zero(result):
    made = plots.fct_cdf({"a": result, "b": result})
    assert [p["share"] for p in made.data] == [0.25, 0.5, 0.75, 1.0] * 2
    assert made.data[0]["fct_us"] == pytest.approx(0.12)
    tail = plots.fct_cdf(result, tail=True)
    assert [p["share"] for p in tail.data] == [0.75, 0.5, 0.25]
    assert tail.figure.axes[0].get_yscale() == "log"


def test_a_queue_histogram_keeps_its_counts():
    made = plots.queue_histogram(np.array([6, 3, 0, 1, 0, 0]))
    assert [(p["cells"], p["observations"], p["share"]) for p in made.data] == [
        (0, 6, 0.6), (1, 3, 0.3), (2, 0, 0.0), (3, 1, 0.1)
    ]  # fmt: skip
    texts = [t.get_text().strip() for t in made.figure.axes[0].texts]
    assert texts == ["p50 = 0", "p99 = 3", "p99.9 = 3"]


def test_link_use_bars_add_up_to_all_cells():
    cells = {"local": 100, "forwarded": 90, "dummy": 10, "delivered": 95}
    made = plots.link_use({"one": cells, "two": cells})
    assert made.data[0] == {"series": "one", "useful": 0.475, "forwarded": 0.475, "dummy": 0.05}
    assert sum(bar.get_width() for bar in made.figure.axes[0].patches) == pytest.approx(2)


def test_the_same_data_gives_the_same_file(rows, tmp_path):
    for form in plots.FORMATS:
        paths = [plots.plot(rows, x="load", y="fct.p99", by="fabric").save(tmp_path / f"{k}.{form}") for k in "ab"]
        assert paths[0].read_bytes() == paths[1].read_bytes()


def test_drawing_leaves_matplotlibs_settings_alone(rows, tmp_path):
    before = dict(matplotlib.rcParams)
    plots.plot(rows, x="load", y="fct.p99").save(tmp_path / "a.svg")
    assert dict(matplotlib.rcParams) == before


def test_pyplot_is_not_imported():
    program = (
        "import sys; from weft.report import plots, tables; assert 'matplotlib' not in sys.modules\n"
        "plots.queue_histogram([1, 2]); assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_an_unknown_format_gets_a_sentence(rows, tmp_path):
    with pytest.raises(BadInput) as found:
        plots.plot(rows, x="load", y="fct.p99").save(tmp_path / "a.gif")
    assert str(found.value) == "a picture's name must end in .svg, .pdf or .png, not 'a.gif'"
    assert os.listdir(tmp_path) == []


def test_a_place_that_cannot_be_written_gets_a_sentence(rows, tmp_path):
    (tmp_path / "a.svg").mkdir()
    with pytest.raises(WeftError) as found:
        plots.plot(rows, x="load", y="fct.p99").save(tmp_path / "a.svg")
    assert str(found.value) == f"{tmp_path / 'a.svg'} cannot be written: is a directory"
    assert os.listdir(tmp_path) == ["a.svg"]


# columns that cannot be drawn


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"x": "load", "y": "fingerprint"},
         f"y must be a column of numbers, not fingerprint, which holds {'ab' * 16!r}"),
        ({"x": "load", "y": "fabric"}, "y must be a column of numbers, not fabric.kind, which holds 'Ring'"),
        ({"x": "notes", "y": "fct.p99"},
         "x and by must be columns of numbers or names, not notes, which holds a list"),
        ({"x": "load", "y": "fct.p99", "by": "notes"},
         "x and by must be columns of numbers or names, not notes, which holds a list"),
        ({"x": "load", "y": "fct.p99", "yscale": "cubic"}, "yscale must be linear or log, not 'cubic'"),
        ({"x": "load", "y": "fct.p99", "xscale": "symlog"}, "xscale must be linear or log, not 'symlog'"),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_is_said(rows, columns, sentence):
    with pytest.raises(BadInput) as said:
        plots.plot(rows, **columns)
    assert str(said.value) == sentence


def test_runs_that_have_no_number_there_at_all_are_said(rows):
    with pytest.raises(BadInput) as said:
        plots.plot([{**row, "fct_us.all.p99": None} for row in rows], x="load", y="fct.p99")
    assert str(said.value) == "at least one run must have both workload.load and fct_us.all.p99, not none"


# the csv beside a picture holds what was drawn


def drawn(figure):
    """[(name, x, y)] of every point of every line with a name, in the order of the axes and lines."""
    return [
        (line.get_label(), float(x), float(y))
        for axes in figure.axes
        for line in axes.lines
        if not line.get_label().startswith("_")
        for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)
    ]


def read(plot):
    return list(csv.DictReader(io.StringIO(plot.csv())))


@pytest.mark.parametrize("y", ["fct.p99", "fct.short.mean", "goodput", "queue_cells.max"])
def test_the_csv_of_lines_holds_the_points_that_were_drawn(rows, y):
    plot = plots.plot(rows, x="load", y=y, by="fabric")
    assert [(line["fabric.kind"], float(line["workload.load"]), float(line["mean"])) for line in read(plot)] == drawn(
        plot.figure
    )
    for line in read(plot):
        assert float(line["min"]) <= float(line["mean"]) <= float(line["max"])
        assert line["runs"] == "3"


def test_the_points_of_a_line_are_the_means_of_its_runs(rows):
    for line in read(plots.plot(rows, x="load", y="fct.p99", by="fabric")):
        mine = [
            row["fct_us.all.p99"]
            for row in rows
            if (row["fabric.kind"], str(row["workload.load"])) == (line["fabric.kind"], line["workload.load"])
        ]
        assert float(line["mean"]) == pytest.approx(sum(mine) / len(mine))
        assert (float(line["min"]), float(line["max"])) == (min(mine), max(mine))


def test_two_panels_put_all_their_points_into_one_csv(rows):
    plot = plots.fct_and_goodput(rows)
    assert [float(line["mean"]) for line in read(plot)] == [y for _, _, y in drawn(plot.figure)]
    assert [line["y"] for line in read(plot)] == ["fct_us.short.p99"] * 4 + ["goodput_gbps.long.mean"] * 4


@pytest.mark.parametrize("tail", [False, True])
def test_the_csv_of_a_cdf_holds_the_steps_that_were_drawn(result, other, tail):
    plot = plots.fct_cdf({"one": result, "other": other}, tail=tail)
    assert [(line["series"], float(line["fct_us"]), float(line["share"])) for line in read(plot)] == drawn(plot.figure)
    assert len(read(plot)) == (6 if tail else 8)


def test_one_finished_flow_has_a_cdf_of_one_step_and_an_empty_tail(result):
    alone = replace(result, observation=replace(result.observation, finish=np.array([10**6, -1, -1, -1])))
    assert read(plots.fct_cdf(alone)) == [{"series": "", "fct_us": "1.0", "share": "1.0"}]
    assert read(plots.fct_cdf(alone, tail=True)) == []


def test_a_picture_replaces_an_older_one_and_leaves_nothing_beside(rows, tmp_path):
    for y in ("fct.p99", "fct.p50"):
        plots.plot(rows, x="load", y=y).save(tmp_path / "a.png")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "a.png"]
    assert read(plots.plot(rows, x="load", y="fct.p50")) == table(tmp_path / "a.csv")


def test_a_name_in_capitals_is_a_format_too(rows, tmp_path):
    plots.plot(rows, x="load", y="fct.p99").save(tmp_path / "a.PNG")
    assert (tmp_path / "a.PNG").read_bytes().startswith(b"\x89PNG")
