"""What goes wrong in a rack, as its user sees it."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import weft
from weft.checkpoint import Checkpoint
from weft.cli import main
from weft.errors import BadInput
from weft.fabrics.shoal import Shoal, arrays
from weft.fabrics.shoal.plain import arrays as plain_arrays
from weft.units import us
from weft.workload import Flows, Planned

RACK = Shoal(nodes=9, channels=2)
POISSON = weft.Poisson(load=0.6, sizes="fixed:5KB", flows=80)


def observe(rack, flows, until=None, seed=0):
    run = rack.prepare(flows, seed=seed)
    run.advance(until=until)
    return run.observe()


def flow(src, dst, size=20_000, start=0, **more):
    return Flows.of(nodes=9, src=[src], dst=[dst], size=[size], start=[start], **more)


def adds_up(seen):
    """Every cell that was made was delivered, was one too many, was lost, or is under way: nothing is when all ends."""
    cells = seen.carried
    there = cells["delivered"] + cells["duplicates"] + seen.lost.total
    return cells["released"] + cells["repeated"] + cells["resent"] == there


# ---------------------------------------------------------------- failures


def test_a_dead_node_is_noticed_by_all_others_within_an_epoch():
    rack = replace(RACK, fail="node 3 at 1us")
    (failure,) = observe(rack, flow(0, 1)).sections["failures"]
    assert {key: failure[key] for key in ("what", "at_ps", "until_ps", "links")} == {
        "what": "node 3", "at_ps": 1 * us, "until_ps": None, "links": 8
    }  # fmt: skip
    assert 1 * us < failure["detected_ps"] <= 1 * us + rack.epoch + rack.slot_time


def test_a_link_that_fails_in_one_direction_is_given_up_in_both():
    rack = replace(RACK, fail="link 3 upward at 1us", channels=1)
    run = rack.prepare(flow(0, 1))
    run.advance()
    declared = run.declarations() >= 0
    assert declared[:, 3].sum() == declared[3].sum() == 8 and declared.sum() == 16
    (failure,) = run.observe().sections["failures"]
    assert failure["links"] == 16
    assert failure["detected_ps"] <= 1 * us + 2 * rack.epoch + rack.slot_time


def test_flows_among_the_living_finish_when_half_of_the_rack_is_dead_from_the_start():
    rack, living = replace(RACK, fail="node 1 3 5 7"), [0, 2, 4, 6, 8]
    pairs = [(i, j) for i in living for j in living if i != j]
    src, dst = zip(*pairs, strict=True)
    flows = Flows.of(nodes=9, src=src, dst=dst, size=[3000] * len(pairs), start=[1 * us] * len(pairs))
    seen = observe(rack, flows)
    assert seen.finished.all()
    assert seen.lost.total == 0
    assert seen.carried["failed_slots"] > 0
    assert set(seen.monitors.values()) == {0}


def test_a_cell_whose_direct_path_fails_takes_another():
    rack = replace(RACK, fail="link 3 downward at 500ns", channels=1)
    seen = observe(rack, flow(0, 3), until=100 * us)
    lost = seen.lost.causes
    assert lost["in_flight"] > 0 and seen.carried["repeated"] > 0
    assert seen.lost.flows == 1  # nothing reaches node 3 any more


def test_a_rack_in_which_nothing_can_move_ends_by_itself_and_says_so():
    flows = Flows.of(nodes=9, src=[0, 2], dst=[3, 4], size=[20_000, 2000], start=[0, 0])
    seen = observe(replace(RACK, fail="node 3 at 500ns"), flows)
    assert seen.finished.tolist() == [False, True]
    assert seen.notes == ("nothing can move any more: 1 of 2 flows will never finish",)
    assert seen.now < 10 * us
    assert seen.lost.flows == 1 and adds_up(seen)


def test_with_a_duration_the_clock_goes_on_to_its_end():
    seen = observe(replace(RACK, fail="node 3"), flow(0, 3), until=1000 * us)
    assert 1000 * us - RACK.slot_time < seen.now <= 1000 * us
    dark, slots = seen.carried["failed_slots"], seen.now // RACK.slot_time
    assert abs(dark - 8 * slots / RACK.rounds.slots) < 16


def test_a_node_that_comes_back_sends_what_waited_for_it():
    flows = Flows.of(nodes=9, src=[3, 0], dst=[1, 3], size=[3000, 3000], start=[5 * us, 30 * us])
    rack = replace(RACK, fail="node 3 at 1us until 20us")
    seen = observe(rack, flows)
    assert seen.finished.all()
    assert seen.finish[0] > 20 * us
    (failure,) = seen.sections["failures"]
    assert failure["until_ps"] == 20 * us and failure["links"] == 8


def test_what_a_node_holds_dies_with_it():
    flows = Flows.of(nodes=9, src=range(8), dst=[8] * 8, size=[20_000] * 8, start=[0] * 8)
    seen = observe(replace(RACK, fail="node 2 at 1us"), flows)
    assert seen.lost.causes["queued"] > 0
    assert seen.lost.flows == (~seen.finished).sum() > 0
    assert adds_up(seen)


def test_uplinks_part_pairs_and_those_with_a_way_of_two_hops_take_it():
    rack = Shoal(nodes=18, channels=1, ports=6, fail="uplink 0.0, uplink 3.1")
    flows = weft.AllToAll(bytes=500).draw(nodes=18, link=rack.link, seed=0)
    flows = Flows.of(nodes=18, src=flows.src, dst=flows.dst, size=flows.size, start=np.full(len(flows), 2 * us))
    run = rack.prepare(flows)
    run.advance()
    seen, apart = run.observe(), run.declarations() >= 0
    assert 0 < seen.sections["failures"][0]["links"] < apart.sum() < 306
    near = ~apart
    np.fill_diagonal(near, False)
    reach = near | (near.astype(int) @ near.astype(int) > 0)
    assert seen.finished.tolist() == reach[flows.src, flows.dst].tolist()
    assert not reach[flows.src, flows.dst].all()  # some pairs have no way left, neither direct nor by anybody else
    assert seen.lost.total == 0


def test_a_share_of_the_nodes_is_drawn_from_the_seed():
    rack = replace(RACK, fail="nodes 50%")
    whats = [[o.name for o in rack.outages(seed)] for seed in range(4)]
    assert all(len(names) == 5 for names in whats)
    assert len(set(map(tuple, whats))) > 1
    assert [f["what"] for f in observe(rack, flow(0, 1), seed=2).sections["failures"]] == whats[2]


# ---------------------------------------------------------------- damage and clocks


def test_the_threshold_is_the_probability_to_the_last_bit():
    for ber, cell in ((1e-12, 64), (1e-3, 9), (0.3, 1)):
        exact = (1 - (1 - Fraction(ber)) ** (8 * cell)) * 2**64
        assert plain_arrays.threshold(ber, cell) == int(exact)
    assert plain_arrays.threshold(0.0, 64) == 0
    assert plain_arrays.threshold(0.999, 1500) == 2**64 - 1


def test_every_flow_finishes_whatever_is_damaged_on_the_way():
    flows = POISSON.draw(nodes=9, link=RACK.link, seed=1)
    seen = observe(replace(RACK, ber=1e-4), flows, seed=1)
    assert seen.finished.all()
    lost, cells = seen.lost.causes, seen.carried
    assert lost["corrupted"] > 0 and cells["repeated"] > lost["corrupted"] and cells["duplicates"] > 0
    assert seen.lost.flows == 0 and adds_up(seen)
    expected = (cells["local"] + cells["forwarded"]) * (1 - (1 - 1e-4) ** 512)
    assert abs(lost["corrupted"] - expected) < 5 * expected**0.5


def test_another_seed_damages_other_cells():
    flows = POISSON.draw(nodes=9, link=RACK.link, seed=1)
    prints = {observe(replace(RACK, ber=1e-4), flows, seed=seed).fingerprint for seed in (1, 1, 2)}
    assert len(prints) == 2


def test_clocks_that_stray_collide_until_another_master_serves():
    rack = replace(RACK, fail="node 0 at 5us", drift=1e6, resync=5 * us, failover=40 * us, sync=20)
    flows = Flows.of(nodes=9, src=[1, 2, 3], dst=[4, 5, 6], size=[500_000] * 3, start=[0] * 3)
    seen = observe(rack, flows, seed=3)
    assert seen.lost.causes["collided"] > 0
    assert seen.finished.all()
    calm = observe(replace(rack, drift=0.0), flows, seed=3)
    assert calm.lost.causes["collided"] == 0
    assert calm.finish.max() < seen.finish.max()


# ---------------------------------------------------------------- classes


def test_the_first_class_hardly_notices_the_second():
    lone = flow(0, 1, size=50_000)
    alone = observe(RACK, lone).finish[0]
    src, dst = [0, *range(2, 9)], [1] * 8
    crowd = Flows.of(nodes=9, src=src, dst=dst, size=[50_000] * 8, start=[0] * 8, klass=[0] + [1] * 7)
    first = observe(replace(RACK, classes=2), crowd).finish[0]
    mixed = observe(RACK, Flows.of(nodes=9, src=src, dst=dst, size=[50_000] * 8, start=[0] * 8)).finish[0]
    assert alone <= first < 1.3 * alone < mixed


def test_a_full_queue_of_a_lower_class_drops_and_the_sender_repeats():
    crowd = Flows.of(nodes=9, src=range(8), dst=[8] * 8, size=[20_000] * 8, start=[0] * 8, klass=[0] * 4 + [1] * 4)
    rack = replace(RACK, classes=2, class_depth=1)
    seen = observe(rack, crowd)
    assert seen.finished.all()
    assert seen.lost.causes["dropped"] > 0 and adds_up(seen)
    assert seen.sections["queue_cells"]["max_by_class"][0] <= 5  # eq. (5) holds for the first class


# ---------------------------------------------------------------- transport


def test_with_a_transport_every_flow_between_living_nodes_finishes():
    flows = POISSON.draw(nodes=9, link=RACK.link, seed=1)
    rack = replace(RACK, fail="node 3 at 2us, node 5 at 3us until 6us", ber=1e-5)
    bare, sure = observe(rack, flows, seed=1), observe(replace(rack, transport="e2e"), flows, seed=1)
    alive = (flows.src != 3) & (flows.dst != 3)
    assert not bare.finished[alive].all()
    assert sure.finished[alive].all()
    cells = sure.carried
    assert cells["resent"] > 0 and cells["acknowledgements"] > 0
    assert sure.lost.flows == (~sure.finished).sum()


def test_a_transport_asks_for_nothing_where_nothing_is_lost():
    flows = POISSON.draw(nodes=9, link=RACK.link, seed=1)
    seen = observe(replace(RACK, transport="e2e"), flows)
    assert seen.finished.all()
    assert seen.carried["resent"] == seen.carried["duplicates"] == 0
    assert seen.lost.total == 0 and set(seen.monitors.values()) == {0}


def test_a_transport_that_is_in_a_hurry_sends_too_much_and_loses_nothing():
    flows = POISSON.draw(nodes=9, link=RACK.link, seed=1)
    seen = observe(replace(RACK, transport="e2e", timeout=RACK.epoch), flows)
    assert seen.finished.all()
    assert seen.carried["duplicates"] > 0


def test_a_long_flow_outgrows_the_memory_of_what_was_sent():
    rack = replace(RACK, transport="e2e", fail="node 3 at 1us", timeout=900 * RACK.epoch)
    flows = Flows.of(nodes=9, src=[0, 2, 4, 5], dst=[1] * 4, size=[500_000] * 4, start=[0] * 4)
    run = rack.prepare(flows)
    run.advance()
    assert run.state.origin.shape[1] > arrays.WINDOW
    seen = run.observe()
    assert seen.finished.all() and seen.carried["resent"] > 0
    assert seen.carried["delivered"] == 4 * -(-500_000 // rack.payload)


# ---------------------------------------------------------------- runs


@pytest.mark.parametrize(
    "rack",
    [replace(RACK, fail="nodes 20% at 2us until 9us, node 8 at 4us", transport="e2e"), replace(RACK, ber=1e-3)],
    ids=["failures", "damage"],
)
def test_a_run_resumes_to_the_same_bits(rack, tmp_path):
    whole, looks = weft.run(rack, POISSON, seed=1), []

    def stop(run):
        looks.append(run)
        if len(looks) == 3:
            raise KeyboardInterrupt

    checkpoint = Checkpoint(tmp_path / "c", every=0.0)
    with pytest.raises(KeyboardInterrupt):
        weft.run(rack, POISSON, seed=1, progress=stop, checkpoint=checkpoint)
    resumed = weft.run(rack, POISSON, seed=1, checkpoint=checkpoint)
    assert resumed.observation.fingerprint == whole.observation.fingerprint
    assert resumed.observation.sections == whole.observation.sections
    assert np.array_equal(resumed.observation.finish, whole.observation.finish)


def test_the_memory_that_is_foretold_is_what_the_arrays_take():
    for rack in (Shoal(nodes=128, ber=1e-9), Shoal(nodes=100, classes=3, delay=40, fail="node 1 at 1us until 2us")):
        run = rack.prepare(POISSON.draw(nodes=rack.nodes, link=rack.link, seed=1))
        taken = sum(array.nbytes for array in (*run.state, *run.plan))
        assert 0.7 * taken < rack.memory(Planned(rack.nodes, 80)) < 1.5 * taken


def test_the_command_line_says_what_failed_and_what_was_lost(capsys):
    line = "run shoal incast --nodes 8 --fan-in 4 --bytes 20KB --fail"
    assert main([*line.split(), "node 3 at 2us", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [failure["what"] for failure in said["failures"]] == ["node 3"]
    causes = ("in_flight", "discarded", "queued", "corrupted", "collided", "dropped")
    assert set(said["lost"]) == {"unit", "total", "causes", "flows"}
    assert said["lost"]["total"] == sum(said["lost"]["causes"][cause] for cause in causes)


def test_a_study_can_compare_failures(tmp_path):
    (tmp_path / "s.toml").write_text(
        '[fabric]\nkind = "shoal"\nnodes = 8\nfail = ["node 3", "node 3 at 2us until 4us"]\n'
        '[workload]\nkind = "incast"\nfan_in = 4\nbytes = "5KB"\n'
    )
    assert [point.fabric.fail for point in weft.Study.load(tmp_path / "s.toml").points] == [
        "node 3", "node 3 at 2us until 4us"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"ber": 2}, "ber must be at least 0 and below 1, not 2"),
        ({"ber": -1e-9}, "ber must be at least 0 and below 1, not -1e-09"),
        ({"classes": 0}, "classes must be from 1 to 8, not 0"),
        ({"classes": 9}, "classes must be from 1 to 8, not 9"),
        ({"class_depth": 0}, "class_depth must be at least 1 cell, not 0"),
        ({"fail": "node 9"}, "a node must be from 0 to 8, not '9'"),
        ({"fail": "spine 0"}, "ports must be given, the size of a switch, for 'spine 0' to be meant"),
        ({"ports": 2},
         "nodes must be at most 2 with 2-port switches in two stages, not 9 (switches of 6 ports would do)"),
        ({"fail": "node 3 at 2us until 1us"}, "a failure must end after it begins, not 'node 3 at 2us until 1us'"),
        ({"ber": 0.1, "rules": "literal"}, "ber must be left out under the literal rules, which know nothing of it"),
        ({"fail": "node 1", "rules": "literal"},
         "fail must be left out under the literal rules, which know nothing of it"),
        ({"transport": "tcp"}, "transport must be one of none, e2e, not 'tcp'"),
        ({"timeout": 0}, "timeout must be above 0, not 0"),
        ({"transport": "e2e", "rules": "literal"},
         "transport must be left out under the literal rules, which know nothing of it"),
        ({"drift": -1}, "drift must be from 0 to 1,000,000 ppb, not -1"),
        ({"sync": 10, "sync_guard": 4000}, "sync_guard must be within the guard, not '4 ns'"),
    ],
)  # fmt: skip
def test_what_cannot_go_wrong_is_named(wrong, message):
    with pytest.raises(BadInput) as error:
        replace(RACK, **wrong)
    assert str(error.value) == message


def test_a_class_that_the_rack_does_not_have_is_named():
    with pytest.raises(BadInput) as error:
        RACK.prepare(flow(0, 1, klass=[2]))
    assert str(error.value) == "class must be below the number of classes, 1, not 2"
