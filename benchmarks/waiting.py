"""Flows that wait for flows: what releasing them costs a kernel, and what it costs where nobody waits.

A chain runs once with its flows waiting for each other, and once as a table in which every flow starts when the chain
released it: the same cells at the same moments, without a calendar. Both take turns; a ratio is that of two runs in a
row, and their median counts, because a machine that others use is slower at one time than at another. Compilation is
left out. The last column says whether all flows ended at the same moments. `--quick` does a tenth of the work.

    ring      all-reduce of 1 GB among 512 nodes of a Shoal rack, its first steps; at least 0.8 of the independent rate
    small     flows of some cells in chains on each kind of kernel, every flow with a predecessor; at most 5 % slower

`--without` runs tables in which nobody waits with a copy of the source as well, from which every question about waiting
is cut out, in processes of their own that take turns with ours: what the mechanism costs those who do not use it.
`--before DIR` does the same with the sources in DIR/src, an older checkout. `--count` asks for instructions in place of
seconds, which Valgrind counts, Python's own among them: two counts of the same kernels were up to 5 % apart.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import process_time

import numpy as np

import weft
from weft.engine.loop import LARGEST, MORE
from weft.units import KB, ms, ns, us
from weft.workload import Flows, Poisson

FAR = 1 << 61  # a start that no run reaches


def chains(nodes, count, size):
    """`count` flows of `size` bytes in as many chains as there are nodes, each node sending to five others in turn."""
    src = np.arange(count) % nodes
    dst = (src + 1 + np.arange(count) // nodes % 5) % nodes
    after = [[] if f < nodes else [f - nodes] for f in range(count)]
    return Flows.of(nodes=nodes, src=src, dst=dst, size=size, start=0, after=after, delay=1 * ns)


def independent(flows, finish):
    """The same flows, each starting when it was released; those that were not start beyond the end."""
    released = flows.released(finish)
    start = np.where(released < 0, FAR, released)
    return Flows.of(nodes=flows.nodes, src=flows.src, dst=flows.dst, size=flows.size, start=start, id=flows.id)


def timed(fabric, flows, until):
    """(CPU seconds, observation) of a run, compiled before."""
    run = fabric.prepare(flows, seed=1)
    run.compile()
    began = process_time()
    run.advance(until=until)
    return process_time() - began, run.observe()


def compare(name, fabric, flows, until, turns):
    """Print the two rates and their ratio."""
    _, seen = timed(fabric, flows, until)
    free = independent(flows, seen.finish)
    spent = [[], []]
    for turn in range(turns):
        for k in (0, 1) if turn % 2 else (1, 0):
            seconds, again = timed(fabric, (flows, free)[k], until)
            spent[k].append(seconds)
            if k:
                ended = again.finish
    moved = sum(seen.carried.values())
    waiting, alone = (moved / min(seconds) / 1e6 for seconds in spent)
    ratio = median(b / a for a, b in zip(*spent, strict=True))
    done = int((seen.finish >= 0).sum())
    same = "same" if np.array_equal(ended[np.argsort(free.id)], seen.finish[np.argsort(flows.id)]) else "other"
    print(f"{name:34} {len(flows):8,} {done:8,} {waiting:9.2f} {alone:11.2f} {ratio:6.3f}  {same}", flush=True)


QUESTIONS = {  # file below src/weft -> (what it asks about flows that wait, what is left without that)
    "hosts/flow.py": [
        (
            "        if s.waits_size > 0:\n"
            "            s.coming = calendar.release(waits(s), successors(s), s.coming, flow.id, s.now)\n",
            "",
        )
    ],
    "hosts/loop.py": [
        (
            "        if s.coming != coming:  # an event has released a flow\n"
            "            limit, coming = last_before(s, until), s.coming\n",
            "",
        ),
        (" and coming == 0:", ":"),
        ("    if s.coming > 0:\n        until = min(until, waits(s)[0, calendar.TIME] - 1)\n", ""),
        ("if s.next_flow < s.known and traffic_at(s, s.next_flow).start <= s.now:", "if True:"),
    ],
    "fabrics/crossbar/kernel.py": [
        (
            "        if s.waits.shape[0] > 0:\n"
            "            set_free(number, slot, s.gone, s.flow_due, s.count, s.waits, s.successors)\n",
            "",
        ),
        ("        if s.count[Count.HEAPED] > 0:\n            due = min(due, s.waits[0, TIME])\n", ""),
    ],
    "fabrics/crossbar/arrivals.py": [("count[Count.HEAPED] > 0 and waits[0, TIME] <= slot", "False")],
    "fabrics/shoal/rules.py": [
        ("    if tally[HEAPED] > 0 and state.waits[0, TIME] <= slot:\n        return state.waits[0, FLOW]\n", ""),
        (
            "    if f < plan.numbers[KNOWN]:\n        tally[KNOWN_STARTED] += 1\n",
            "    if True:\n        tally[KNOWN_STARTED] += 1\n",
        ),
        ("    if tally[HEAPED] > 0:\n        slot = min(slot, state.waits[0, TIME])\n", ""),
        (
            "        if state.waits.shape[0] > 0:\n"
            "            state.tally[HEAPED] = release("
            "state.waits, state.successors, state.tally[HEAPED], f, slot + 1)\n",
            "",
        ),
    ],
}


def without(home):
    """A copy of the source below `home` in which nobody can wait."""
    shutil.copytree(Path(weft.__file__).parents[1], home / "src")
    for name, cuts in QUESTIONS.items():
        path = home / "src" / "weft" / name
        text = path.read_text()
        for old, new in cuts:
            if text.count(old) != 1:
                sys.exit(f"{name} must ask once {old!r}, not {text.count(old)} times")
            text = text.replace(old, new)
        path.write_text(text)


FREE = {
    "shoal of 64": weft.Shoal(nodes=64),
    "crossbar of 16": weft.Crossbar(ports=16),
    "ndp, 64 hosts": weft.Packet(hosts=64, transport="ndp"),
    "dctcp, 64 hosts": weft.Packet(hosts=64, transport="dctcp"),
}


def small_flows(fabric, count):
    """A table in which nobody waits: small flows, so that their ends count."""
    return Poisson(load=0.6, sizes="fixed:1KB", flows=count).draw(nodes=fabric.nodes, link=fabric.link, seed=1)


def nobody(quick):
    """name -> CPU seconds of tables in which nobody waits."""
    spent = {}
    for name, fabric in FREE.items():
        table = small_flows(fabric, 20_000 if quick else 200_000)
        timed(fabric, table, 1 * us)
        seconds, seen = min((timed(fabric, table, None) for _ in range(9)), key=lambda taken: taken[0])
        spent[name] = seconds, int(seen.finish.sum())
    return spent


def against(folder, quick):
    """Print what nobody's waiting costs, in turns with another source; the last column is that of the ends of flows."""
    here = str(Path(weft.__file__).parents[2])
    best = {}
    for _ in range(2 if quick else 4):
        for place in (here, folder):
            command = [sys.executable, __file__, "--nobody", *(["--quick"] if quick else [])]
            environment = os.environ | {"PYTHONPATH": os.path.join(place, "src")}
            out = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
            for name, (seconds, ends) in json.loads(out).items():
                best.setdefault(name, {}).setdefault(place, []).append((seconds, ends))
    print("nobody waits                           s here    s there  ratio  events")
    for name, places in best.items():
        ours, theirs = (min(runs) for runs in (places[here], places[folder]))
        same = "same" if ours[1] == theirs[1] else "other"
        print(f"{name:34} {ours[0]:10.3f} {theirs[0]:10.3f} {ours[0] / theirs[0]:6.3f}  {same}", flush=True)


def only(name, count):
    """One table of so many flows, in as few strides as can be."""
    run = FREE[name].prepare(small_flows(FREE[name], int(count)), seed=1)
    run.compile()
    while (why := run.step(FAR, LARGEST)) >= MORE:
        run.grow(why)


def instructions(place, name, count) -> int:
    """How many instructions that takes with the sources in `place`, Python's start and the drawing included."""
    if shutil.which("valgrind") is None:
        sys.exit("--count needs valgrind, which is not installed")
    command = [sys.executable, __file__, "--only", name, str(count)]
    plain = {
        "NUMBA_CPU_NAME": "x86-64-v3",
        "NUMBA_CPU_FEATURES": "",
        "PYTHONHASHSEED": "0",
        "OPENBLAS_NUM_THREADS": "1",
    }
    environment = os.environ | plain | {"PYTHONPATH": os.path.join(place, "src")}
    subprocess.run(command, env=environment, check=True)  # compiles
    counting = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", *command]
    told = subprocess.run(counting, env=environment, capture_output=True, text=True, check=True).stderr
    return int(re.search(r"I +refs: +([0-9,]+)", told)[1].replace(",", ""))


def counted(folder):
    """Print the instructions that a flow takes more in a larger table than in a smaller one, here and there."""
    here = str(Path(weft.__file__).parents[2])
    print("nobody waits              instructions a flow, here      there  ratio")
    for name in FREE:
        few, many = 4_000, 20_000
        totals = [[instructions(place, name, flows) for flows in (few, many)] for place in (here, folder)]
        ours, theirs = ((more - less) / (many - few) for less, more in totals)
        print(f"{name:34} {ours:19.1f} {theirs:10.1f} {ours / theirs:6.4f}", flush=True)


def main():
    if "--only" in sys.argv[1:]:
        only(*sys.argv[2:])
        return
    quick = "--quick" in sys.argv[1:]
    if "--nobody" in sys.argv[1:]:
        print(json.dumps(nobody(quick)))
        return
    if "--without" in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as home:
            without(Path(home))
            if "--count" in sys.argv[1:]:
                counted(home)
            else:
                against(home, quick)
        return
    print("                                      flows     done   M/s here  M/s without  ratio  events")
    turns = 5 if quick else 9
    rack = weft.Shoal(nodes=512)
    ring = weft.AllReduce(bytes=10**9).draw(nodes=512, link=rack.link, seed=1)
    compare("ring of 512, 1 GB: cells", rack, ring, (500 if quick else 2000) * us, turns)
    count = 4_000 if quick else 40_000
    for name, fabric, size in (
        ("shoal of 64: cells", weft.Shoal(nodes=64), 2 * KB),
        ("crossbar of 64: cells", weft.Crossbar(ports=64), 2 * KB),
        ("ndp, 64 hosts: packet hops", weft.Packet(hosts=64, transport="ndp"), 4 * KB),
        ("dctcp, 64 hosts: packet hops", weft.Packet(hosts=64, transport="dctcp"), 4 * KB),
    ):
        compare(name, fabric, chains(fabric.nodes, count, size), 1000 * ms, turns)
    if "--before" in sys.argv[1:]:
        against(sys.argv[sys.argv.index("--before") + 1], quick)


if __name__ == "__main__":
    main()
