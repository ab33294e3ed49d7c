"""The contract of rooms, asked of every real one: what a fabric and a run are, and the laws that hold for all."""

import ast
from dataclasses import fields, is_dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import weft
from graphs import waiting
from laws import LAWS
from rooms import CELLS, EACH, FLOWS, LAWFUL, LOSING, ONE, SMALL, named
from weft import catalogue
from weft.checkpoint import Checkpoint
from weft.engine import loop
from weft.errors import BadInput
from weft.fabrics import FABRICS
from weft.fabrics.base import Fabric, Run
from weft.metrics import schema
from weft.metrics.observation import NAMES, Observation
from weft.units import KB, Gbps, us
from weft.workload import Planned

each = pytest.mark.parametrize(("room", "fabric"), EACH, ids=named(EACH))
one = pytest.mark.parametrize(("room", "fabric"), ONE, ids=[name for name, _ in ONE])
ROOT = Path(weft.__file__).parent


def started(fabric, workload=FLOWS[0], seed=1):
    return fabric.prepare(workload.draw(nodes=fabric.nodes, link=fabric.link, seed=seed), seed=seed)


def test_every_room_of_the_registry_is_asked():
    assert list(SMALL) == list(FABRICS) and all(SMALL.values())


# a fabric


@each
def test_a_fabric_is_a_frozen_description(room, fabric):
    assert isinstance(fabric, Fabric) and is_dataclass(fabric) and type(fabric).__doc__
    assert type(fabric).__dataclass_params__.frozen
    assert replace(fabric) == fabric and hash(replace(fabric)) == hash(fabric)
    assert fabric.nodes >= 2 and fabric.link > 0 and fabric.payload_rate > 0
    for field in fields(fabric):
        assert field.metadata["help"], field.name


@each
def test_memory_is_predicted_before_anything_is_drawn_and_grows_with_the_flows(room, fabric):
    none, many = fabric.memory(Planned(fabric.nodes)), fabric.memory(Planned(fabric.nodes, 10**6))
    assert isinstance(none, int) and 0 <= none <= many
    assert fabric.memory(FLOWS[0].draw(nodes=fabric.nodes, link=fabric.link, seed=1)) > 0


@one
def test_a_fabric_takes_what_it_carries_and_refuses_the_rest(room, fabric):
    cells = CELLS.draw(nodes=fabric.nodes, link=fabric.link, seed=1)
    if isinstance(cells, fabric.carries):
        assert isinstance(fabric.prepare(cells), Run)
    else:
        with pytest.raises(BadInput, match=r"must be given flows, not cells that are made slot by slot$"):
            fabric.prepare(cells)
    with pytest.raises(BadInput, match=rf"^demand must be drawn for the {fabric.nodes} nodes of the fabric, not 99$"):
        fabric.prepare(FLOWS[0].draw(nodes=99, link=fabric.link, seed=1))


@one
def test_the_workloads_of_a_fabric_are_those_it_carries(room, fabric):
    known = catalogue.workloads(type(fabric))
    assert "poisson" in known
    assert ("bernoulli" in known) == any(issubclass(catalogue.every_workload()["bernoulli"].draws, kind)
                                         for kind in fabric.carries)  # fmt: skip


# a run


@each
def test_a_run_under_way_tells_how_far_it_is(room, fabric):
    run, looks = started(fabric), []
    assert isinstance(run, Run) and run.total == 60 and run.finished == 0 and run.now == 0 and run.unit
    run.advance(watch=lambda run: looks.append((run.compiling, run.now, run.finished, run.work, run.share)))
    assert looks[0][0] and not any(look[0] for look in looks[1:])  # compiling is said first, and once
    for column in zip(*looks, strict=True):
        assert list(column[1:]) == sorted(column[1:])
    assert run.finished == run.total or (room == "shoal" and fabric.fail)  # some flows may be beyond help
    assert run.work > 0 and run.seconds > 0


@each
def test_a_step_stops_where_it_is_told(room, fabric):
    run = started(fabric)
    run.compile()
    why, budget = loop.PAUSED, 50
    while why != loop.REACHED:
        why = run.step(4 * us, budget)
        if why >= loop.MORE:
            run.grow(why)
        assert why != loop.DONE and run.now <= 4 * us
    assert run.now > 3 * us
    before = run.now, run.observe().fingerprint
    run.step(run.now, 1000)
    assert (run.now, run.observe().fingerprint) == before  # there is nothing before now


@one
def test_strides_that_seem_to_take_no_time_stay_within_what_a_kernel_can_count(room, fabric):
    going = loop.strides(started(fabric))
    next(going)
    for _ in range(2_000):
        _, budget = going.send((loop.PAUSED, 1e-9))
    assert budget == loop.LARGEST


@each
def test_where_strides_end_changes_no_event(room, fabric):
    whole = started(fabric)
    whole.advance()
    pieces = started(fabric)
    pieces.budget = 3
    for moment in (1, 2, 2, 3, 5, 8):
        pieces.advance(until=moment * us)
    pieces.advance()
    assert pieces.observe().fingerprint == whole.observe().fingerprint
    assert np.array_equal(pieces.observe().finish, whole.observe().finish)


@each
def test_a_frozen_run_goes_on_to_the_same_bits(room, fabric):
    whole, run = started(fabric), started(fabric)
    whole.advance()
    run.advance(until=6 * us)
    frozen = {name: array.copy() for name, array in run.freeze().items()}
    assert all(isinstance(array, np.ndarray) and array.dtype.kind in "iubfV" for array in frozen.values())
    thawed = fabric.thaw(run.demand, frozen, seed=1)
    assert (thawed.now, thawed.finished, thawed.work) == (run.now, run.finished, run.work)
    run.advance()  # does not touch what was copied
    thawed.advance()
    for one in (run, thawed):
        assert one.observe().fingerprint == whole.observe().fingerprint
        assert np.array_equal(one.observe().finish, whole.observe().finish)
        assert np.array_equal(one.observe().received, whole.observe().received)


@pytest.mark.parametrize(("room", "fabric"), LAWFUL, ids=named(LAWFUL))
@pytest.mark.parametrize("pattern", FLOWS, ids=["even", "mixed", "incast", "alltoall"])
def test_every_law_holds(room, fabric, pattern):
    run = started(fabric, pattern)
    run.advance()
    seen, broken = run.observe(), []
    seen = replace(seen, monitors={law: count for law, count in seen.monitors.items() if run.promises(law)})
    for law in LAWS:
        try:
            law(fabric, run.demand, seen)
        except AssertionError as error:
            broken.append(f"{law.__name__}: {error}")
    assert not broken, broken
    assert seen.lost.flows == 0 or fabric in LOSING.get(room, ())


@each
def test_monitors_are_asked_cheaply_and_thoroughly_for_the_same_laws(room, fabric):
    run = started(fabric)
    run.advance(until=10 * us)
    assert set(run.monitors(False)) == set(run.monitors(True)) and "conservation" in run.monitors(True)
    assert not any(count for law, count in run.monitors(True).items() if run.promises(law))


# results


@each
def test_no_destination_gets_more_than_a_link_carries(room, fabric):
    """What every node gets of one long flow, against `payload_rate`, which fractions of the link are of."""
    throughput = weft.run(fabric, weft.Permutation(bytes=300 * KB), seed=1).summary()["throughput"]
    assert throughput["fraction_of_link"] > 0
    assert throughput["per_destination_gbps"]["max"] * Gbps <= fabric.payload_rate * (1 + 1e-9)


def gbps_while_busy(result):
    """The throughput of every destination by hand: bytes that arrived, over the time in which a flow was coming in."""
    flows, finish, now, rates = result.flows, result.observation.finish, result.observation.now, []
    for node in np.unique(flows.dst):
        mine = flows.dst == node
        ends = np.where(finish[mine] < 0, now, finish[mine]).tolist()
        reached = busy = 0
        for start, end in sorted(zip(flows.start[mine].tolist(), ends, strict=True)):
            busy += max(end - max(start, reached), 0)
            reached = max(end, reached)
        rates.append(int(result.observation.received[mine].sum()) * 8e3 / busy)
    return rates


@one
def test_throughput_of_finite_flows_is_counted_in_one_way_in_every_room(room, fabric):
    """Whether the fabric has finished them or not."""
    whole = weft.run(fabric, FLOWS[1], seed=1)
    cut = weft.run(fabric, FLOWS[1], seed=1, until=int(np.quantile(whole.observation.finish, 0.7)))
    assert cut.observation.finish.min() < 0
    for result in (whole, cut):
        found, wanted = result.summary()["throughput"], gbps_while_busy(result)
        assert found["window"] == "while the destination had flows coming in"
        assert found["per_destination_gbps"]["mean"] == pytest.approx(np.mean(wanted))
        assert found["per_destination_gbps"]["max"] == pytest.approx(max(wanted))
        assert found["fraction_of_link"] == pytest.approx(np.mean(wanted) * Gbps / fabric.payload_rate)


@each
def test_an_observation_has_the_agreed_parts(room, fabric):
    run = started(fabric)
    run.advance()
    seen = run.observe()
    assert isinstance(seen, Observation)
    assert set(NAMES) <= set(seen.samples)
    times = seen.samples["time_ps"]
    assert times[0] == 0 and (np.diff(times) > 0).all() and times[-1] == run.now
    assert seen.samples["delivered_bytes"].shape == (len(times), fabric.nodes)
    assert (np.diff(seen.samples["delivered_bytes"], axis=0) >= 0).all()
    assert seen.samples["delivered_bytes"][-1].sum() >= seen.received.sum()
    assert seen.samples["finished"][-1] == run.finished
    assert seen.queue.max >= 0 and seen.queue.max_bytes >= 0 and seen.lost.total >= 0


@each
def test_a_fabric_names_its_links_and_how_long_each_sent_or_says_why_not(room, fabric):
    names = fabric.lines()
    assert len(set(names)) == len(names) and (len(names) > 0) == (fabric.no_lines == Fabric.no_lines)
    assert ("busy_ps" in started(fabric).sample()) == (len(names) > 0)


@each
def test_a_summary_has_the_common_sections_and_a_room_prints_its_own(room, fabric):
    result = weft.run(fabric, FLOWS[0], seed=1)
    summary = result.summary()
    assert schema.problems(summary) == []
    facts = list(type(fabric).facts(summary))
    assert facts and all(isinstance(name, str) and isinstance(text, str) and text for name, text in facts)


@one
def test_a_result_goes_into_a_folder_and_back_and_is_made_again(room, fabric, tmp_path):
    result = weft.run(fabric, FLOWS[0], seed=1)
    result.save(tmp_path / "r")
    loaded = weft.Result.load(tmp_path / "r")
    assert loaded.summary() == result.summary()
    again = weft.run(*catalogue.rebuild_call(loaded.provenance), seed=1)
    assert again.observation.fingerprint == result.observation.fingerprint


@one
def test_an_interrupted_run_resumes_to_the_same_result(room, fabric, tmp_path):
    whole, looks = weft.run(fabric, FLOWS[0], seed=1), []

    def stop(run):
        looks.append(run)
        return len(looks) == 3

    checkpoint = Checkpoint(tmp_path / "c", every=1000.0)
    with pytest.raises(weft.Interrupted) as stopped:
        weft.run(fabric, FLOWS[0], seed=1, progress=stop, checkpoint=checkpoint)
    assert stopped.value.result.partial and checkpoint.exists()
    resumed = weft.run(fabric, FLOWS[0], seed=1, checkpoint=checkpoint)
    assert resumed.observation.fingerprint == whole.observation.fingerprint
    for name, column in whole.observation.samples.items():
        assert np.array_equal(resumed.observation.samples[name], column), name


# the tree


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


@pytest.mark.parametrize("room", FABRICS)
def test_no_room_imports_another(room):
    others = {f"weft.fabrics.{name}" for name in FABRICS if name != room}
    for path in [*(ROOT / "fabrics" / room).rglob("*.py"), *(ROOT / "fabrics/network").rglob("*.py")]:
        for module in imports(path):
            assert not any(module == other or module.startswith(f"{other}.") for other in others), f"{path}: {module}"


SPECIFIC = ("papers", "fabrics", "cli/bench.py", "cli/schedule.py", "cli/wire.py", "cli/presets.py", "models", "wire")


def test_machinery_shared_by_rooms_names_none_of_them():
    """No code asks for a fabric by its name, outside the room, the registry, and what is about one system."""
    kinds = {place.partition(":")[2] for place in FABRICS.values()}
    for path in ROOT.rglob("*.py"):
        place = path.relative_to(ROOT).as_posix()
        if place.startswith(SPECIFIC) or place == "__init__.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            asked = isinstance(node, ast.Compare) and [
                item.value for item in ast.walk(node) if isinstance(item, ast.Constant) and isinstance(item.value, str)
            ]
            assert not asked or not ({*FABRICS, *kinds} & set(asked)), f"{place}:{node.lineno} asks for {asked}"


# flows that wait for flows


def chains(nodes):
    """Flows among eight of the nodes, in chains that meet now and then."""
    return weft.Flows.of(
        nodes=nodes, src=[k % 8 for k in range(48)], dst=[(k + 3) % 8 for k in range(48)], size=3000, start=0,
        after=[[] if k < 8 else [k - 8] if k % 5 else [k - 8, k - 3] for k in range(48)], delay=20_000,
    )  # fmt: skip


WHOLE = [(name, fabric) for name, fabric in EACH if not getattr(fabric, "fail", None) and fabric.nodes >= 8]
EIGHT = [(name, fabric) for name, fabric in WHOLE if fabric.nodes == 8]
EIGHT += [next(one for one in WHOLE if one[0] == room) for room in FABRICS if room not in dict(EIGHT)]
EIGHT += [("packet", replace(SMALL["packet"][k], hosts=8, topology="single")) for k in range(5)]
eight = pytest.mark.parametrize(("room", "fabric"), EIGHT, ids=[f"{name}-{k}" for k, (name, _) in enumerate(EIGHT)])


def test_every_room_is_asked_about_flows_that_wait():
    assert {room for room, _ in EIGHT} == set(FABRICS) and all(fabric.releases for _, fabric in EIGHT)


def respected(fabric, flows, finish):
    """Whether no flow began before those it waits for were done and their delays were over, nor took no time."""
    released = flows.released(finish)
    assert (finish >= 0).all() and (released >= flows.start).all()
    assert (finish - released >= fabric.ideal(flows)).all()
    for f in range(len(flows)):
        for g, gap in zip(flows.predecessors(f), flows.gaps(f), strict=True):
            assert finish[g] + gap <= released[f]


@eight
def test_a_flow_begins_when_those_it_waits_for_are_done_and_not_before(room, fabric):
    flows = chains(fabric.nodes)
    run = fabric.prepare(flows, seed=1)
    run.advance()
    assert run.finished == run.total == 48
    respected(fabric, flows, run.observe().finish)


@eight
@settings(
    max_examples=6, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate], database=None
)
@given(data=st.data())
def test_any_acyclic_graph_of_flows_ends_in_an_order_that_respects_it(room, fabric, data):
    """Whole, and stopped somewhere on the way and taken up again."""
    flows = data.draw(waiting(fabric.nodes, most=24, largest=20_000, delays=(0, 0, 1, 50_000, 7_000_001)))
    run = fabric.prepare(flows, seed=1)
    run.advance()
    whole = run.observe()
    respected(fabric, flows, whole.finish)
    run = fabric.prepare(flows, seed=1)
    run.advance(until=max(int(whole.now * data.draw(st.floats(0, 1))), 1))
    thawed = fabric.thaw(flows, {name: array.copy() for name, array in run.freeze().items()}, seed=1)
    thawed.advance()
    assert thawed.observe().fingerprint == whole.fingerprint
    assert np.array_equal(thawed.observe().finish, whole.finish)


@eight
def test_a_run_stopped_in_the_middle_of_a_chain_goes_on_to_the_same_bits(room, fabric):
    flows = chains(fabric.nodes)
    whole = fabric.prepare(flows, seed=1)
    whole.advance()
    run = fabric.prepare(flows, seed=1)
    run.advance(until=whole.now // 3)
    assert 0 < run.finished < 48
    thawed = fabric.thaw(flows, {name: array.copy() for name, array in run.freeze().items()}, seed=1)
    thawed.advance()
    assert thawed.observe().fingerprint == whole.observe().fingerprint
    assert np.array_equal(thawed.observe().finish, whole.observe().finish)


WAITING = [
    weft.AllReduce(bytes=3000, algorithm="hierarchical", group=4), weft.Experts(bytes=2000, expert=100_000),
    weft.ParameterServer(bytes=2000, servers=2, repeat=2), weft.Pipeline(model="bert-tiny", stages=2, batches=1),
    weft.MapReduce(mappers=4, reducers=3, bytes=2000), weft.ChainReplication(writes=12, bytes=2000),
]  # fmt: skip


@eight
def test_every_workload_that_waits_is_done_and_not_before_its_bound(room, fabric):
    for workload in WAITING:
        summary = weft.run(fabric, workload, seed=1).summary()
        told = next(summary[name] for name in ("collective", "training", "requests") if name in summary)
        assert summary["unfinished"] == 0 and told["done"] > 0
        assert told.get("over_bound", 1) >= 1, (workload, told)
        assert list(workload.facts(summary))


@eight
def test_flows_that_wait_cost_nothing_where_there_are_none(room, fabric):
    """The same flows, said to wait for nobody, are the same run."""
    given = {"nodes": fabric.nodes, "src": [0, 1, 2], "dst": [3, 4, 5], "size": 5000, "start": [0, 10, 20]}
    plain, said = weft.Flows.of(**given), weft.Flows.of(**given, after=[[], [], []])
    prints = set()
    for flows in (plain, said):
        run = fabric.prepare(flows, seed=1)
        run.advance()
        prints.add(run.observe().fingerprint)
    assert len(prints) == 1
