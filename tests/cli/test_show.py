"""`weft show`: several results, and series and maps of every room, printed, drawn and as JSON."""

import csv
import json

import pytest

import weft as library
from rooms import FLOWS, ONE
from weft.report.series import KINDS, MAPS


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A result of every room."""
    place = tmp_path_factory.mktemp("kept")
    for room, fabric in ONE:
        library.run(fabric, FLOWS[0], seed=1).save(place / room)
    return place


def test_several_results_are_a_line_each(weft, kept):
    said = weft("show", kept / "shoal", kept / "ideal", kept / "torus")
    lines = said.out.splitlines()
    assert said.code == 0 and [line.split()[:2] for line in lines[-4:-1]] == [
        ["shoal", "Shoal"], ["ideal", "Ideal"], ["torus", "Torus"]
    ]  # fmt: skip
    assert "…" not in said.out and lines[-1].startswith("throughput is while")
    rows = json.loads(weft("show", kept / "shoal", kept / "ideal", "--json").out)["runs"]
    assert [row["folder"] for row in rows] == ["shoal", "ideal"] and rows[0]["seed"] == 1


@pytest.mark.parametrize("room", [name for name, _ in ONE])
def test_every_series_and_map_of_every_room_is_printed_drawn_and_told(weft, kept, tmp_path, room):
    for kind in (*KINDS, *MAPS):
        path = tmp_path / f"{kind}.svg"
        said = weft("show", kept / room, "--series", kind, "--plot", path)
        if (room, kind) == ("ideal", "queues"):
            assert (said.code, said.out) == (2, "") and "which Ideal has not" in said.err
            continue
        assert said.code == 0 and path.stat().st_size > 1000 and len(said.out.splitlines()) > 2
        told = json.loads(weft("show", kept / room, "--series", kind, "--json").out)
        with open(path.with_suffix(".csv")) as file:
            points = len(list(csv.reader(file))) - 1
        if kind in KINDS:
            (line,) = told["series"].values()
            assert len(line["time_us"]) == len(line[kind]) == points
        else:
            assert sum(map(len, told[kind].values())) == points
            # intervals have a moment more, at their end
            assert len(told["time_us"]) - len(next(iter(told[kind].values()))) == (kind != "queues")


def test_maps_of_several_results_are_told_under_their_names(weft, kept, tmp_path):
    both = kept / "shoal", kept / "packet"
    said = weft("show", *both, "--series", "links", "--plot", tmp_path / "links.png")
    assert said.code == 0 and {"shoal:", "packet:"} <= set(said.out.splitlines())
    told = json.loads(weft("show", *both, "--series", "queues", "--json").out)["results"]
    assert [told[name]["unit"] for name in ("shoal", "packet")] == ["cells", "packets"]
    many = [kept / "shoal"] * 7
    assert weft("show", *many, "--series", "heat").err == "weft show: a map must be of 1 to 6 results, not 7\n"
