"""Flows that wait for flows: what releasing them costs a kernel, and what it costs where nobody waits.

A chain runs once with its flows waiting for each other, and once as a table in which every flow starts when the chain
released it: the same cells at the same moments, without a calendar. Both take turns; a ratio is that of two runs in a
row, and their median counts, because a machine that others use is slower at one time than at another. Compilation is
left out. The last column says whether all flows ended at the same moments. `--quick` does a tenth of the work.

    ring      all-reduce of 1 GB among 512 nodes of a Shoal rack, its first steps; at least 0.8 of the independent rate
    small     flows of some cells in chains on each kind of kernel, every flow with a predecessor; at most 5 % slower

`--without` asks what the mechanism costs those who do not use it. Tables in which nobody waits run with copies of the
source: one from which every question about waiting is cut out; one that is the same to the byte, so that what it seems
to cost is noise; and placebos, in which a question is added that is as frequent, has nothing to do with waiting and is
never true, so that what they seem to cost is what LLVM and the processor make of any other code. They take turns, a
process each; printed is how long ours takes in proportion to each, as the median over the turns with the interval of
order statistics that holds the median with at least 95 %. `--before DIR` compares with the sources in DIR/src, an older
checkout, in the same way.

`--count` asks for instructions in place of seconds, which Valgrind counts in the machine code of the kernels alone: two
counts of the same source are equal to some 1 in 10 million. A difference of whole runs cannot tell: Python's start
takes 14 billion instructions, and a million more or less from one time to the next.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from math import comb, inf
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
    "hosts/flow.py": [("        if s.waits_size > 0:\n            set_free(s, flow.id)\n", "")],
    "hosts/loop.py": [
        (" and s.coming == 0:", ":"),
        ("    if s.coming > 0:\n        until = min(until, waits(s)[0, calendar.TIME] - 1)\n", ""),
        ("if f < s.known and traffic_at(s, f).start <= s.now:", "if True:"),
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
        ("        if state.waits.shape[0] > 0:\n            set_free(state, f, slot)\n", ""),
    ],
}
STARTS = {  # a question with every flow that starts; the answer is always no
    "hosts/loop.py": [
        ("    slot = open_slot(s, f)\n", "    slot = open_slot(s, f)\n    if s.live < 0:\n        s.moved = 0\n")
    ],
    "fabrics/crossbar/arrivals.py": [
        (
            "        active[i] = f\n        count[Count.ACTIVE] += 1\n",
            "        active[i] = f\n        count[Count.ACTIVE] += 1\n"
            "        if count[Count.ACTIVE] < 0:\n            count[Count.LOST] = 0\n",
        )
    ],
    "fabrics/shoal/rules.py": [
        (
            "    tally[STARTED] += 1\n",
            "    tally[STARTED] += 1\n    if tally[STARTED] < 0:\n        tally[FINISHED] = 0\n",
        )
    ],
}
ENDS = {  # the same with every flow that ends
    "hosts/flow.py": [
        ("        s.finished += 1\n", "        s.finished += 1\n        if s.finished < 0:\n            s.moved = 0\n")
    ],
    "fabrics/crossbar/kernel.py": [
        (
            "            count[Count.FINISHED] += 1\n",
            "            count[Count.FINISHED] += 1\n"
            "            if count[Count.FINISHED] < 0:\n                count[Count.LOST] = 0\n",
        )
    ],
    "fabrics/shoal/rules.py": [
        (
            "        state.tally[FINISHED] += 1\n",
            "        state.tally[FINISHED] += 1\n"
            "        if state.tally[FINISHED] < 0:\n            state.tally[STARTED] = 0\n",
        )
    ],
}
OTHERS = {"without": QUESTIONS, "same": {}, "placebo 1": STARTS, "placebo 2": ENDS}


def copied(home, changes):
    """`home`, with a copy of the source in which these changes are made."""
    shutil.copytree(Path(weft.__file__).parents[1], home / "src")
    for name, some in changes.items():
        path = home / "src" / "weft" / name
        text = path.read_text()
        for old, new in some:
            if text.count(old) != 1:
                sys.exit(f"{name} must have {old!r} once, not {text.count(old)} times")
            text = text.replace(old, new)
        path.write_text(text)
    return str(home)


FREE = {
    "shoal of 64": weft.Shoal(nodes=64),
    "crossbar of 16": weft.Crossbar(ports=16),
    "ndp, 64 hosts": weft.Packet(hosts=64, transport="ndp"),
    "dctcp, 64 hosts": weft.Packet(hosts=64, transport="dctcp"),
}


def small_flows(fabric, count):
    """A table in which nobody waits: small flows, so that their starts and ends count."""
    return Poisson(load=0.6, sizes="fixed:1KB", flows=count).draw(nodes=fabric.nodes, link=fabric.link, seed=1)


def nobody(quick):
    """name -> (CPU seconds of a table in which nobody waits, a sum over the ends of its flows)."""
    spent = {}
    for name, fabric in FREE.items():
        table = small_flows(fabric, 20_000 if quick else 100_000)
        timed(fabric, table, 1 * us)
        seconds, seen = min((timed(fabric, table, None) for _ in range(5)), key=lambda taken: taken[0])
        spent[name] = seconds, int(seen.finish.sum())
    return spent


def interval(ratios):
    """(low, high) that holds the median with at least 95 %, whatever the distribution; of five or fewer there is none.

    The k-th smallest of n is above the median with the chance of fewer than k heads in n throws.
    """
    n = len(ratios)
    ranks = [k for k in range(1, n // 2 + 1) if 2 * sum(comb(n, i) for i in range(k)) <= 0.05 * 2**n]
    if not ranks:
        return -inf, inf
    ordered = sorted(ratios)
    return ordered[ranks[-1] - 1], ordered[-ranks[-1]]


def against(others, quick):
    """Print what nobody's waiting costs, in turns with other sources; the last column is that of the ends of flows."""
    places = {"ours": str(Path(weft.__file__).parents[2]), **others}
    spent = {}
    for turn in range((6 if quick else 17) + 1):  # the first compiles, and is dropped
        order = list(places)
        for where in order[turn % len(order) :] + order[: turn % len(order)]:
            command = [sys.executable, __file__, "--nobody", *(["--quick"] if quick else [])]
            environment = os.environ | {"PYTHONPATH": os.path.join(places[where], "src")}
            out = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
            for name, took in json.loads(out).items():
                spent.setdefault(name, {}).setdefault(where, []).append(took)
    print("nobody waits: CPU s, ours / " + "".join(f"{where:24}" for where in others) + "events")
    for name, runs in spent.items():
        shown = ""
        for where in others:
            ratios = [a / b for (a, _), (b, _) in zip(runs["ours"][1:], runs[where][1:], strict=True)]
            low, high = interval(ratios)
            shown += f"{median(ratios):.3f} [{low:.3f}, {high:.3f}]".ljust(24)
        same = "same" if len({ends for some in runs.values() for _, ends in some}) == 1 else "other"
        print(f"{name:28}{shown}{same}", flush=True)


def only(name, count):
    """One table of so many flows, in as few strides as can be; under Callgrind it counts those."""
    run = FREE[name].prepare(small_flows(FREE[name], int(count)), seed=1)
    run.compile()
    count_on = "CALLGRIND" in os.environ
    if count_on:
        subprocess.run(["callgrind_control", "--instr=on", str(os.getpid())], check=True, capture_output=True)
    while (why := run.step(FAR, LARGEST)) >= MORE:
        run.grow(why)
    if count_on:
        subprocess.run(["callgrind_control", "--instr=off", str(os.getpid())], check=True, capture_output=True)


def instructions(place, name, count) -> int:
    """How many instructions that takes in the machine code of kernels, with the sources in `place`."""
    if shutil.which("callgrind_control") is None:
        sys.exit("--count needs Valgrind, which is not installed")
    command = [sys.executable, __file__, "--only", name, str(count)]
    plain = {"NUMBA_CPU_NAME": "x86-64-v3", "NUMBA_CPU_FEATURES": ""}  # Valgrind knows no instructions of later ones
    environment = os.environ | plain | {"PYTHONPATH": os.path.join(place, "src")}
    subprocess.run(command, env=environment, check=True)  # compiles
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "counts")
        counting = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={out}", *command]
        subprocess.run(counting, env=environment | {"CALLGRIND": "1"}, capture_output=True, check=True)
        told = subprocess.run(
            ["callgrind_annotate", "--threshold=100", "--show-percs=no", out],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    # what lies in no file was made by Numba
    return sum(
        int(found.replace(",", "")) for found in re.findall(r"^ *([0-9,]+) +\S+ \[\?\?\?\]$", told, re.MULTILINE)
    )


def counted(others):
    """Print the instructions of a flow, and in proportion to those with other sources."""
    here, flows = str(Path(weft.__file__).parents[2]), 20_000
    print("nobody waits: instructions a flow, ours / " + "".join(f"{where:12}" for where in others))
    for name in FREE:
        ours = instructions(here, name, flows)
        ratios = "".join(f"{ours / instructions(place, name, flows):<12.4f}" for place in others.values())
        print(f"{name:28}{ours / flows:10,.1f}    {ratios}", flush=True)


def compare_sources(variants, folders, quick):
    """Compare with what `variants` make of the source, and with sources in other folders."""
    with tempfile.TemporaryDirectory() as home:
        os.environ["WEFT_CACHE"] = os.path.join(home, "cache")  # what is compiled for copies goes with them
        copies = {name: copied(Path(home) / str(k), changes) for k, (name, changes) in enumerate(variants.items())}
        if "--count" in sys.argv[1:]:
            counted(folders | copies)
        else:
            against(folders | copies, quick)


def main():
    if "--only" in sys.argv[1:]:
        only(*sys.argv[2:])
        return
    quick = "--quick" in sys.argv[1:]
    if "--nobody" in sys.argv[1:]:
        print(json.dumps(nobody(quick)))
        return
    if "--without" in sys.argv[1:]:
        compare_sources(OTHERS, {}, quick)
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
        before = sys.argv[sys.argv.index("--before") + 1]
        compare_sources({"same": {}}, {"before": before}, quick)


if __name__ == "__main__":
    main()
