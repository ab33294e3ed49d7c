"""`weft.cost(fabric)` and `weft cost --of DIR`: the description that was run, priced as far as it is known."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

import weft
from weft import Gbps
from weft.cli import main
from weft.errors import BadPart
from weft.models import shoal
from weft.models.parts import Bill, Catalogue

RUN = ("run", "shoal", "incast", "--nodes", "8", "--channels", "2", "--fan-in", "3", "--bytes", "13KB", "--quiet")


def the(cost, title):
    """The sum by the catalogue of that title."""
    return next(one for one in cost.sums if one.catalogue == title)


def test_the_paper_s_rack_has_the_paper_s_watts():
    """§5: 2.55 kW for 48 circuit switches and 512 NICs, 8.72 kW for the packet network."""
    rack = weft.cost(weft.Shoal(nodes=512, channels=2))
    assert rack.parts == {"circuit switch of 64 x 50 Gbps": 48, "Shoal NIC of 100 Gbps": 512}
    (found,) = rack.sums
    assert found.watts == pytest.approx(shoal.PricedRack().watts()["shoal"])
    packets = weft.cost(weft.Packet(hosts=512, topology="leafspine", link=50 * Gbps))
    assert the(packets, "Shoal, 2019").watts == pytest.approx(shoal.PricedRack().watts()["packet"])
    assert the(packets, "Shoal, 2019").price == pytest.approx(28)


def test_a_fat_tree_of_discrete_switches_has_the_price_of_network_1():
    """HOTI '09, Table VII: 720 24-port switches for 3,456 ports cost 4.88 M$."""
    tree = weft.cost(weft.Packet(hosts=3456, link=10 * Gbps))
    assert tree.parts["packet switch of 24 x 10 Gbps"] == 720
    found = the(tree, "merchant silicon, 2009")
    assert found.price == pytest.approx(4.88e6, rel=1e-3)
    assert (found.rack_units, found.spare) == (720, 1.0)
    assert "left out, packet NIC of 10 Gbps: the paper leaves the hosts' NICs out" in found.notes


def test_a_part_that_stands_for_a_smaller_one_is_said():
    found = the(weft.cost(weft.Packet(hosts=16, link=10 * Gbps)), "merchant silicon, 2009")
    assert "assumed: a whole packet switch of 24 x 10 Gbps for each packet switch of 4 x 10 Gbps" in found.notes
    assert found.spare == 6
    assert found.bill == Bill({"ASIC": 20, "CPU": 20, "PHY": 480, "SFP+": 480})


def test_the_catalogue_that_fits_best_comes_first():
    cost = weft.cost(weft.Packet(hosts=16, link=25 * Gbps))
    assert [one.catalogue for one in cost.sums] == ["Shoal, 2019", "Stardust, 2018"]
    assert [one.spare for one in cost.sums] == sorted(one.spare for one in cost.sums)


def test_what_no_catalogue_has_is_said_in_a_sentence():
    cost = weft.cost(weft.Packet(hosts=128, topology="leafspine", link=400 * Gbps))
    assert cost.sums == ()
    assert cost.unknown[0] == (
        "price, watts and space of packet switch of 64 x 400 Gbps: no catalogue has one; those known have 24 x 10 Gbps "
        "(merchant-2009), 64 x 50 Gbps (shoal-2019), 256 x 25 Gbps (stardust-2018), 128 x 50 Gbps (stardust-2018), "
        "64 x 100 Gbps (stardust-2018), 32 x 200 Gbps (stardust-2018)"
    )


def test_a_rack_that_no_such_switches_connect_is_said_in_a_sentence():
    cost = weft.cost(weft.Shoal(nodes=5000))
    assert cost.unknown == (
        "what it is made of: nodes must be at most 2048 with 64-port switches in two stages, not 5000 (switches of 100 "
        "ports would do)",
    )


def test_a_fabric_that_lists_no_parts_is_said_in_a_sentence():
    @dataclass(frozen=True)
    class Ideal:
        nodes: int = 4

    assert weft.cost(Ideal(nodes=5)).unknown == ("what Ideal is made of; a fabric says so in parts()",)
    assert str(weft.cost(Ideal(nodes=5))).startswith("Ideal, nodes 5\n")


@pytest.mark.parametrize(
    "buffers, design, megabits", [("shared", "smislip", 358.613), ("gcq", "gcq", 368.738), ("voq", "islip", 335.544)]
)
def test_a_crossbar_of_the_paper_needs_the_paper_s_memory(buffers, design, megabits):
    cost = weft.cost(weft.Crossbar(ports=64, buffers=buffers, cell=160, link=50 * Gbps))
    assert cost.resources["design"] == design
    assert cost.resources["memory_bits"] == pytest.approx(1e6 * megabits, rel=1e-5)
    assert cost.resources["fits"]["XCVU9P"] is False
    assert cost.unknown == ("price, watts and space of FPGA crossbar of 64 x 50 Gbps: no catalogue has one",)


@pytest.mark.parametrize(
    "given, sentence",
    [
        ({"buffers": "cioq"}, "memory: the paper has equations for voq, shared, gcq buffers, not cioq"),
        (
            {"buffers": "gcq", "output": 8},
            "memory: eq. (5) has output buffers as deep as the memory of a sub-switch, not 8 and 64 cells",
        ),
    ],
)
def test_a_crossbar_that_the_paper_has_no_equation_for_is_said_in_a_sentence(given, sentence):
    cost = weft.cost(weft.Crossbar(ports=16, **given))
    assert cost.resources is None
    assert sentence in cost.unknown


def test_a_user_may_price_a_part_by_the_name_that_a_fabric_gives_it(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('title = "mine"\n[parts."packet switch of 64 x 400 Gbps"]\nprice = "9000 USD"\n'
                    '[[stands_for]]\npart = "cable of 400 Gbps"\nis = { "fibre 10 m" = 1 }\n'
                    '[left_out]\n"host cable" = "there already"\n')  # fmt: skip
    fabric = weft.Packet(hosts=128, topology="leafspine", link=400 * Gbps)
    found = the(weft.cost(fabric, [Catalogue.load(path)]), "Stardust, 2018 with mine")
    assert found.price == 6 * 9000 + 128 * 8
    assert "left out, host cable of 400 Gbps: there already" in found.notes


def test_a_single_price_changes_the_catalogues_that_have_the_part():
    fabric = weft.Packet(hosts=3456, link=10 * Gbps)
    base, dear = (the(weft.cost(fabric, (), more), "merchant silicon, 2009").price
                  for more in ([], [("SFP+", {"price": 350})]))  # fmt: skip
    assert dear - base == 100 * 24 * 720
    with pytest.raises(BadPart, match=r"^part must be in some catalogue, not in none, as 'laser' is$"):
        weft.cost(fabric, (), [("laser", {"price": 1})])


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("stands_for = [3]", "stands_for of m.toml must be tables of part and is, with in and note if need be, not 3"),
        (
            '[[stands_for]]\npart = "a"\nis = {a = "b"}',
            "is of stands_for in m.toml must be counts by part, not {'a': 'b'}",
        ),
        ('[[stands_for]]\npart = "a"\nis = {a = 1}', "part must be in some catalogue, not in none, as 'a' is"),
        (
            '[[stands_for]]\npart = "a"\nis = {ASIC = 1}',
            "a part that is stood for must be named as in 'packet switch of 24 x 10 Gbps', not 'a'",
        ),
    ],
)
def test_a_catalogue_whose_stand_ins_cannot_be_meant_gets_a_sentence(tmp_path, text, sentence):
    (tmp_path / "m.toml").write_text(text + "\n")
    with pytest.raises(BadPart) as error:
        weft.cost(weft.Shoal(nodes=8), [Catalogue.load(tmp_path / "m.toml")])
    assert str(error.value) == sentence


def test_a_saved_run_is_priced_from_its_folder(tmp_path, capsys):
    assert main([*RUN, "-o", str(tmp_path / "r")]) == 0
    capsys.readouterr()
    assert main(["cost", "--of", str(tmp_path / "r")]) == 0
    assert capsys.readouterr().out == f"{weft.cost(weft.Shoal(nodes=8, channels=2))}\n"
    assert main(["cost", "--of", str(tmp_path / "r"), "--watts", "Shoal NIC=2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["parts"] == {"circuit switch of 64 x 50 Gbps": 4, "Shoal NIC of 100 Gbps": 8}
    assert found["sums"][0]["watts"] == pytest.approx(4 * 38.5 + 8 * 2)
    assert not any(word in (tmp_path / "r" / "result.json").read_text() for word in ("watts", "price"))


def test_what_is_no_result_gets_a_sentence(tmp_path, capsys):
    assert main(["cost", "--of", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("weft cost: ")
    assert main(["cost", "--price", "SFP+=3"]) == 2
    said = "of must be given a result folder, or cost the name of a system, such as shoal"
    assert capsys.readouterr().err == f"weft cost: {said}\n"


def test_no_room_takes_a_number_from_a_price_list():
    """What a simulation computes with is its own, or was measured: not one of its files imports a model."""
    rooms = Path(weft.__file__).parent / "fabrics"
    assert [path.name for path in rooms.rglob("*.py") if "weft.models" in path.read_text()] == []
