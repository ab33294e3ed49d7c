"""run: what it returns, what it refuses, and that a run interrupted anywhere ends like one that was not."""

import os
import signal
from dataclasses import replace

import numpy as np
import pytest

import weft
from weft import experiment, memory
from weft.checkpoint import Checkpoint
from weft.errors import BadInput, BadResult, TooLarge
from weft.units import KB, ms, us
from weft.workload import ENDLESS, Flows, Planned

RACK = weft.Shoal(nodes=8)
SOME = weft.Poisson(load=0.6, sizes="fixed:20KB", flows=60)


@pytest.fixture(scope="module")
def whole():
    return weft.run(RACK, SOME, seed=3)


def same(a, b) -> bool:
    seen = a.observation, b.observation
    return (
        seen[0].fingerprint == seen[1].fingerprint
        and np.array_equal(seen[0].finish, seen[1].finish)
        and np.array_equal(seen[0].received, seen[1].received)
        and seen[0].sections == seen[1].sections
        and all(np.array_equal(seen[0].samples[name], seen[1].samples[name]) for name in seen[0].samples)
    )


def test_a_run_returns_what_was_observed_and_where_it_came_from(whole):
    assert whole.observation.finished.all()
    assert whole.provenance["seed"] == 3
    assert whole.fabric["kind"] == "Shoal"
    assert whole.provenance["wall_s"] > 0
    assert not whole.partial


def test_the_same_seed_gives_the_same_bits_and_another_one_others(whole):
    assert same(weft.run(RACK, SOME, seed=3), whole)
    assert weft.run(RACK, SOME, seed=4).observation.fingerprint != whole.observation.fingerprint


def test_a_run_stops_where_it_is_told_to():
    result = weft.run(RACK, SOME, seed=3, until=2 * us)
    assert result.observation.now <= 2 * us
    assert not result.observation.finished.all()
    assert result.provenance["until"] == 2 * us


def test_a_run_stops_where_its_workload_says():
    result = weft.run(RACK, weft.Permutation(duration=20 * us), seed=0)
    assert result.provenance["until"] == 20 * us
    assert result.observation.now <= 20 * us


def test_flows_without_an_end_need_an_end_of_the_run():
    flows = Flows.of(nodes=8, src=[0, 1], dst=[1, 2], size=[ENDLESS, 5], start=0)
    with pytest.raises(BadInput) as said:
        experiment.horizon(SOME, flows)
    assert str(said.value) == "until must be given, because 1 of 2 flows never end, not None"
    assert experiment.horizon(SOME, flows, 5 * us) == 5 * us


def test_an_end_that_is_no_time_is_refused():
    with pytest.raises(BadInput) as said:
        weft.run(RACK, SOME, until=-5)
    assert str(said.value) == "until must be above 0 ps, not -5"


def test_a_run_that_needs_more_than_it_may_have_is_refused_before_anything_is_drawn(monkeypatch):
    monkeypatch.setattr(type(SOME), "draw", lambda *a, **k: pytest.fail("drawn"))
    with pytest.raises(TooLarge) as said:
        weft.run(RACK, SOME, memory=1000)
    needed = experiment.need(RACK, Planned(8, 60))
    assert needed == experiment.PROGRAM + RACK.memory(Planned(8, 60)) + 60 * experiment.DRAWING
    shown = experiment.show_size(needed)
    assert str(said.value) == f"a run of 8 nodes and 60 flows must fit in 1 KB of memory, not need {shown}"


def test_a_fabric_of_flows_refuses_cells():
    with pytest.raises(BadInput) as said:
        weft.run(RACK, weft.Bernoulli(load=0.5))
    assert str(said.value) == "Shoal must be given flows, not cells that are made slot by slot"


def test_more_flows_than_memory_holds_are_refused_not_attempted():
    with pytest.raises(TooLarge, match=r"a run of 8 nodes and 1,000,000,000,000 flows must fit in "):
        weft.run(RACK, replace(SOME, flows=10**12))


def test_a_run_may_need_four_fifths_of_the_machine():
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert 0 < memory.may_have() <= 0.8 * machine


def test_progress_is_called_between_strides_and_sees_time_pass():
    seen = []
    weft.run(RACK, SOME, seed=3, progress=lambda run: seen.append((run.now, run.finished, run.work)))
    assert len(seen) > 3
    assert seen == sorted(seen)


def test_progress_may_stop_a_run():
    with pytest.raises(weft.Interrupted) as stopped:
        weft.run(RACK, SOME, seed=3, progress=lambda run: True)
    assert stopped.value.result.partial


def interrupt(after):
    """A progress function that sends Ctrl-C to this process at the `after`-th stride."""
    strides = []

    def look(run):
        strides.append(run.now)
        if len(strides) == after:
            os.kill(os.getpid(), signal.SIGINT)

    return look


def test_control_c_leaves_a_partial_result(whole):
    with pytest.raises(weft.Interrupted) as stopped:
        weft.run(RACK, SOME, seed=3, progress=interrupt(3))
    result = stopped.value.result
    assert result.partial
    assert 0 < result.observation.now < whole.observation.now
    done = result.observation.finished
    assert (result.observation.finish[done] == whole.observation.finish[done]).all()


def test_control_c_puts_the_old_handler_back():
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(weft.Interrupted):
        weft.run(RACK, SOME, progress=interrupt(2))
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_control_c_does_not_wait():
    def look(run):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        pytest.fail("the second one was waited for")

    with pytest.raises(KeyboardInterrupt) as stopped:
        weft.run(RACK, SOME, progress=look)
    assert not isinstance(stopped.value, weft.Interrupted)


@pytest.mark.parametrize("after", [1, 2, 5])
def test_a_resumed_run_ends_like_one_that_was_never_interrupted(whole, tmp_path, after):
    checkpoint = Checkpoint(tmp_path / "run.checkpoint")
    with pytest.raises(weft.Interrupted):
        weft.run(RACK, SOME, seed=3, progress=interrupt(after), checkpoint=checkpoint)
    assert checkpoint.exists()
    resumed = weft.run(RACK, SOME, seed=3, checkpoint=checkpoint)
    assert same(resumed, whole)
    resumed.save(tmp_path / "resumed")
    whole.save(tmp_path / "whole")
    for name in ("flows.parquet", "samples.parquet"):
        assert (tmp_path / "resumed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_run_interrupted_at_every_stride_still_ends_the_same(whole, tmp_path):
    checkpoint = Checkpoint(tmp_path / "run.checkpoint")
    sessions = 0
    while True:
        sessions += 1
        try:
            result = weft.run(RACK, SOME, seed=3, progress=interrupt(9), checkpoint=checkpoint)
            break
        except weft.Interrupted:
            continue
    assert sessions > 3
    assert same(result, whole)


def test_a_run_with_an_end_resumes_too(tmp_path):
    load, end = weft.Permutation(), 50 * us
    whole = weft.run(RACK, load, until=end)
    checkpoint = Checkpoint(tmp_path / "run.checkpoint")
    for after in (1, 2):
        with pytest.raises(weft.Interrupted):
            weft.run(RACK, load, until=end, progress=interrupt(after), checkpoint=checkpoint)
    assert same(weft.run(RACK, load, until=end, checkpoint=checkpoint), whole)


def test_a_checkpoint_counts_the_time_that_was_spent_before(tmp_path):
    checkpoint = Checkpoint(tmp_path / "run.checkpoint")
    with pytest.raises(weft.Interrupted) as stopped:
        weft.run(RACK, SOME, progress=interrupt(3), checkpoint=checkpoint)
    before = stopped.value.result.provenance["wall_s"]
    assert weft.run(RACK, SOME, checkpoint=checkpoint).provenance["wall_s"] > before


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({"seed": 4}, "the same seed as this run, not of 3"),
        ({"fabric": replace(RACK, guard=0, slot=None)}, "the same fabric as this run, not of guard 2750"),
        ({"workload": replace(SOME, load=0.5)}, "the same workload as this run, not of load 0.6"),
        ({"until": 1 * ms}, "the same until as this run, not of None"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused_with_what_differs(tmp_path, change, difference):
    checkpoint = Checkpoint(tmp_path / "run.checkpoint")
    call = {"fabric": RACK, "workload": SOME, "seed": 3, "until": None}
    with pytest.raises(weft.Interrupted):
        weft.run(*(call[k] for k in ("fabric", "workload")), seed=3, progress=interrupt(2), checkpoint=checkpoint)
    call |= change
    with pytest.raises(BadResult) as said:
        weft.run(call["fabric"], call["workload"], seed=call["seed"], until=call["until"], checkpoint=checkpoint)
    assert str(said.value) == f"{checkpoint.path} must be of {difference}"


def test_a_trace_that_changed_since_the_checkpoint_is_refused(tmp_path):
    trace, checkpoint = tmp_path / "t.csv", Checkpoint(tmp_path / "run.checkpoint")
    weft.Poisson(load=0.6, sizes="fixed:20KB", flows=40).draw(nodes=8, link=RACK.link, seed=1).to_csv(trace)
    with pytest.raises(weft.Interrupted):
        weft.run(RACK, weft.Trace(path=str(trace)), progress=interrupt(2), checkpoint=checkpoint)
    trace.write_text(trace.read_text().replace(",20000,", ",20001,", 1))
    with pytest.raises(BadResult, match="must be of the same inputs as this run"):
        weft.run(RACK, weft.Trace(path=str(trace)), checkpoint=checkpoint)


def test_a_checkpoint_holds_arrays_and_no_code(tmp_path):
    checkpoint = Checkpoint(tmp_path / "run.checkpoint")
    with pytest.raises(weft.Interrupted):
        weft.run(RACK, SOME, progress=interrupt(2), checkpoint=checkpoint)
    with np.load(checkpoint.path, allow_pickle=False) as file:
        assert all(file[name].dtype.kind in "iub" for name in file.files)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 nonsense", bytes(100)], ids=["empty", "cut", "zeros"])
def test_a_checkpoint_that_cannot_be_read_is_named(tmp_path, content):
    path = tmp_path / "run.checkpoint"
    path.write_bytes(content)
    with pytest.raises(BadResult) as said:
        weft.run(RACK, SOME, checkpoint=Checkpoint(path))
    assert str(said.value) == f"{path} must be a checkpoint, not something that cannot be read"


def test_a_disk_that_is_full_ends_no_run(tmp_path, whole, monkeypatch):
    def full(*arguments, **columns):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    checkpoint = Checkpoint(tmp_path / "run.checkpoint", every=0.0)
    assert same(weft.run(RACK, SOME, seed=3, checkpoint=checkpoint), whole)
    assert checkpoint.problem == f"{checkpoint.path} cannot be written: no space left on device"
    assert os.listdir(tmp_path) == []


def test_a_checkpoint_keeps_a_partial_result_beside_it_but_never_over_a_whole_one(tmp_path, whole):
    folder = tmp_path / "run"
    with pytest.raises(weft.Interrupted):
        weft.run(RACK, SOME, seed=3, progress=interrupt(3), checkpoint=Checkpoint.beside(folder))
    assert weft.Result.load(folder).partial
    whole.save(folder)
    with pytest.raises(weft.Interrupted):
        weft.run(RACK, SOME, seed=3, progress=interrupt(3), checkpoint=Checkpoint.beside(folder))
    assert not weft.Result.load(folder).partial


def test_two_runs_in_one_process_do_not_meet(whole):
    """Strides of two runs taken in turn: neither sees the other."""
    flows = SOME.draw(nodes=8, link=RACK.link, seed=3)
    runs = [RACK.prepare(flows), RACK.prepare(flows)]
    for moment in range(1, 200):
        for run in runs:
            run.advance(until=moment * us)
    for run in runs:
        assert run.observe().fingerprint == whole.observation.fingerprint


def test_ten_flows_in_a_second_cost_next_to_nothing():
    start = [k * 100 * ms for k in range(10)]
    table = Flows.of(nodes=64, src=range(10), dst=range(10, 20), size=100 * KB, start=start)
    rack, looks = weft.Shoal(nodes=64), []
    run = rack.prepare(table)
    run.advance(watch=looks.append)
    assert run.finished == 10
    seen = run.observe()
    assert seen.work["stepped"] < seen.work["node_slots"] / 1000


def test_tables_that_grow_ask_again_and_leave_a_checkpoint(tmp_path, monkeypatch):
    """A rack whose tables would double beyond what it may have stops with a sentence, and can go on elsewhere."""
    many = weft.Poisson(load=0.9, sizes="fixed:20KB", flows=4000)
    whole = weft.run(weft.Shoal(nodes=32), many, seed=1)
    asked = []

    def full(size):
        asked.append(size)
        if len(asked) > 1:
            raise TooLarge("tables of a run that grow must fit")

    monkeypatch.setattr("weft.engine.memory.ASKED", 1 << 10)
    checkpoint = Checkpoint(tmp_path / "r.checkpoint")
    grown = [0]
    real = weft.fabrics.shoal.arrays.grow

    def grow(state, why):
        grown[0] += 1
        monkeypatch.setattr("weft.engine.memory.room_for", full)
        return real(state, why)

    monkeypatch.setattr("weft.fabrics.shoal.arrays.grow", grow)
    with pytest.raises(TooLarge) as said:
        weft.run(weft.Shoal(nodes=32), many, seed=1, checkpoint=checkpoint)
    assert str(said.value) == f"tables of a run that grow must fit; {checkpoint.path} keeps the run so far"
    monkeypatch.undo()
    again = weft.run(weft.Shoal(nodes=32), many, seed=1, checkpoint=checkpoint)
    assert grown[0] and again.observation.fingerprint == whole.observation.fingerprint


def test_flows_under_way_at_once_are_counted_from_their_starts_and_sizes():
    sizes, link = [1250, 1250, 1250, 1250], 10**10  # 1 us each
    burst = Flows.of(nodes=8, src=[1, 2, 3, 4], dst=[0, 0, 5, 6], size=sizes, start=0)
    assert burst.at_once(link) == 4
    apart = Flows.of(nodes=8, src=[1, 2, 3, 4], dst=[0, 0, 0, 0], size=sizes, start=[0, us, 2 * us, 3 * us])
    assert apart.at_once(link) <= 2
    assert Flows.of(nodes=8, src=(), dst=(), size=(), start=()).at_once(link) == 0


def test_what_is_no_fabric_or_no_workload_is_said():
    flows = weft.Flows.of(nodes=3, src=[0], dst=[1], size=5, start=0)
    for given, sentence in (
        ((weft.Ideal(nodes=3), flows), "^workload must be what draws flows, as in .*, not Flows: write them by to_csv"),
        ((weft.Ideal(nodes=3), 7), r"^workload must be a Workload, as in weft.Poisson\(load=0.5\), not 7$"),
        (("shoal", weft.Poisson(load=0.5)), r"^fabric must be a Fabric, as in weft.Shoal\(nodes=8\), not 'shoal'$"),
    ):
        with pytest.raises(BadInput, match=sentence):
            weft.run(*given)
