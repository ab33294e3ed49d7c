"""Gates at sizes that tests cannot afford: longer runs, larger proofs, costs beside the papers', prototype figures.

    python verification/rtl.py                      all of it, an hour or two the first time
    python verification/rtl.py figures latency      some: crossbars, groomers, racks, proofs, costs, figures, latency

Prints tables, exits 1 if gates and models differ anywhere or a proof does not hold.
"""

import sys

import numpy as np

from weft.fabrics.crossbar import Crossbar
from weft.models import fpga
from weft.rtl import gates
from weft.rtl.check_crossbar import check as check_crossbar
from weft.rtl.check_shoal import check as check_shoal
from weft.rtl.check_shoal import commands, drive, expect
from weft.rtl.designs import (
    CrossbarGates,
    EepDrive,
    EepGates,
    IslipGates,
    NicGates,
    ShoalDrive,
    ShoalGates,
    SwitchGates,
)  # fmt: skip
from weft.rtl.fail_shoal import CYCLE, Broken
from weft.rtl.properties import PROPERTIES
from weft.rtl.prove import prove
from weft.rtl.shoal_nic import SEND, least_delay
from weft.rtl.shoal_rack import Rack
from weft.rtl.simulate import Simulation
from weft.rtl.synth import synthesise
from weft.units import Gbps, ns
from weft.workload.traffic import Bernoulli, Multicast

PATH = 246  # cycles from node to node: 40 ns of wire, 3 switches of 320 ns, 576 ns at the two ends (§6.2), 1576 ns
missed = []


HEAD = f"{'design':<44} {'cycles':>9} {'cells':>9} {'cycles/s':>9}  agree"


def crossbars():
    """Long runs on all sides, at the sizes of the paper; of 32 ports, which take minutes to compile, shorter ones."""
    print(HEAD)
    for ports, slots in ((8, 100_000), (16, 100_000), (32, 10_000)):
        for buffers, iterations in (("voq", 1), ("voq", 4), ("shared", 1), ("shared", 4), ("gcq", 1)):
            fabric = Crossbar(ports=ports, buffers=buffers, iterations=iterations)
            for traffic in (Bernoulli(load=0.9, slots=slots), Multicast(load=0.8, slots=slots // 20)):
                row(f"crossbar {buffers} {ports} x {iterations}", check_crossbar(fabric, traffic, seed=1))


def groomers():
    """The same of groomers."""
    print(HEAD)
    for groomer in (EepGates(), EepGates(link=10 * Gbps, trunk=40 * Gbps), EepGates(protocol="802.1ad")):
        report = EepDrive().check(groomer, seed=1, vcd=None, engine=None)
        row(f"{groomer.protocol}, {groomer.trunk // Gbps} Gb/s", report)


def racks():
    """The same of racks, and of some that fail in part."""
    print(HEAD)
    for delay in (0, 1, 21):
        design = ShoalGates(nodes=8, ports=4, delay=delay, seats=None if delay < 2 else 64)
        rack = design.component()
        slots = 1_000_000 // rack.slot_cycles
        row(f"shoal 8 nodes, delay {delay}", check_shoal(rack, ShoalDrive().flows(8, slots, 1), slots))
    for channels, delay in ((2, 0), (4, 1)):
        design = ShoalGates(nodes=8, ports=4, delay=delay, channels=channels, failures=True)
        rack = design.component()
        slots = 400_000 // rack.slot_cycles
        for plan in ("node 3 at 500us", "spine 1 at 500us", "uplink 0.1 upward at 500us, link 2 at 800us"):
            broken = Broken.plan(rack, plan)
            report = check_shoal(rack, ShoalDrive().flows(8, slots, 1), slots, broken=broken)
            row(f"shoal {channels} channels, {plan.split(',')[0]}", report)


def row(name, report):
    print(f"{name:<44} {report.cycles:>9,} {report.cells:>9,} {report.cycles_per_s:>9,.0f}  {report.agree}")
    if not report.agree:
        missed.append(f"{name}: {report.first_difference}")


def proofs():
    """Every property at the sizes of the papers' prototypes."""
    cases = [("islip", IslipGates(ports=n, iterations=k)) for n in (8, 16) for k in (1, (n - 1).bit_length())]
    cases += [
        ("shoal-switch", SwitchGates(switch=name)) for name in ("leaf0", "leaf1", "leaf2", "leaf3", "spine0", "spine1")
    ]
    cases += [("shoal-switch", SwitchGates(nodes=32, ports=8, switch=name)) for name in ("leaf0", "spine0")]
    cases += [("crossbar", CrossbarGates(ports=2, buffers="shared")), ("shoal", ShoalGates())]
    cases += [("eep", EepGates())]
    for name, design in cases:
        for verdict in prove(PROPERTIES[name](design)):
            depth = "" if verdict.depth is None else f" {verdict.depth}"
            print(
                f"{verdict.result}{depth}: {verdict.name}; its mutant {'fails' if verdict.mutant_failed else 'HOLDS'}"
            )
            if not verdict.good:
                missed.append(verdict.name)


def costs():
    """LUTs, registers, memory on UltraScale+; a routed clock on ECP5; the paper's clocks are of another device."""
    print("design            target    LUT      FF   LUTRAM    BRAM36   memory bits    MHz   the paper's MHz")
    for n in (8, 16):
        for buffers, name in (("voq", "islip"), ("shared", "smislip"), ("gcq", "gcq")):
            paper = fpga.Design(design=name, ports=n, width=256, speedup=1).measured_clock
            cost = synthesise("crossbar", CrossbarGates(ports=n, buffers=buffers).component(), "xcup")
            line(f"{buffers} {n}", cost, "" if paper is None else f"{paper / 1e6:.2f}")
    for n in (4, 8, 16):
        line(f"islip {n}", synthesise("islip", IslipGates(ports=n).component(), "ecp5"), "")
    for ports, nodes in ((4, 8), (16, 128), (64, 512)):
        design = SwitchGates(nodes=nodes, ports=ports)
        line(f"switch {ports}", synthesise("shoal-switch", design.component(), "cyclonev"), "")
    for protocol in ("eep", "802.1ad"):
        line(protocol, synthesise("eep", EepGates(protocol=protocol).component(), "xc5v"), "")
    for n in (8, 16):
        line(f"nic {n}", synthesise("shoal-nic", NicGates(nodes=n).component(), "cyclonev"), "")


def line(name, cost, paper):
    clock = "-" if cost.fmax_mhz is None else f"{cost.fmax_mhz:g}"
    print(f"{name:<16} {cost.target:>8} {cost.lut:>7,} {cost.ff:>7,} {cost.lutram:>8,} {cost.brams:>8g} "
          f"{cost.ram_bits:>13,} {clock:>7}   {paper:>8}")  # fmt: skip


# ---------------------------------------------------------------- the prototype's figures


def prototype(cell: int, values: int = 1, path: int = PATH) -> Rack:
    """The rack of §6 with cells of so many bytes: 8 nodes, 6 switches of 4 ports, slots of 4 cycles and a word each."""
    words = cell // 8
    cycles = SEND + words
    delay = least_delay(cycles, path, words)
    return gates.rack(
        nodes=8, ports=4, delay=delay, slot_cycles=cycles, latency=path, words=words, seats=2, values=values
    )


def figures():
    """Figs. 9 and 10, measured on the gates."""
    print(
        "Fig. 9: a full permutation, long flows; cells a node gets per slot. Ideal is 1; the paper says about 0.5 for"
    )
    print("large slots and much less for small ones, and its points are lost.")
    print("cell B  slot ns  delay slots  epoch ns   gates   model   agree")
    for cell in (64, 128, 256, 512, 1024):
        rack = prototype(cell)
        epoch = rack.rounds.slots
        warm = 3 * (epoch + 2 * rack.delay)
        slots = warm + 40 * epoch
        flows = [(i, (i + 3) % 8, 1 << 20, 0) for i in range(8)]
        expected = expect(rack, flows, slots)
        seen, _ = drive(rack, commands(rack, expected.recorder, slots))
        got = (seen["delivered"][-1] - seen["delivered"][warm - 1]).sum() / (8 * (slots - warm))
        arrived = sum(dst == j for t in range(warm, slots) for _, j, dst, _, _ in expected.recorder.arrivals[t])
        same = bool((seen["sent"][expected.sends] == expected.headers[expected.sends]).all())
        slot_ns, model = rack.slot_cycles * CYCLE / ns, arrived / (8 * (slots - warm))
        print(f"{cell:>6} {slot_ns:>8.1f} {rack.delay:>12} {epoch * slot_ns:>9.0f} {got:>7.4f} {model:>7.4f}   {same}")
        if not same:
            missed.append(f"Fig. 9, cells of {cell} B")
    print()
    print("Fig. 10: seven nodes send seven cells each to the eighth at once. Paper: 6.05 to 6.9 us, queues of 7.")
    for values in (1, 2):
        incast(values)


def incast(values: int):
    """Fig. 10, with so many values of feedback in a header."""
    rack = prototype(64, values)
    flows, slots = [(i, 7, 7, 0) for i in range(7)], 200
    expected = expect(rack, flows, slots)
    seen, _ = drive(rack, commands(rack, expected.recorder, slots))
    last = {}
    for t in range(slots):
        header = int(seen["heard"]["low"][t, 7, 0])
        if seen["heard_valid"][t, 7, 0] and header & 1023 == 7 and (header >> 10 & 1023) != 7:
            last[header >> 10 & 1023] = t
    done = sorted((t + 1) * rack.slot_cycles * CYCLE / ns / 1000 for t in last.values())
    model = sorted((t + 1) * rack.slot_cycles * CYCLE / ns / 1000 for t in expected.recorder.finish)
    told = "one value of feedback" if values == 1 else f"{values} values of feedback"
    print(f"{told}: gates {done[0]:.2f} to {done[-1]:.2f} us, queues of {int(seen['longest'][-1].max())}")
    print(f"{told}: model {model[0]:.2f} to {model[-1]:.2f} us, queues of {expected.recorder.max_queue}")
    if done != model:
        missed.append(f"Fig. 10, {told}")


# ---------------------------------------------------------------- latency by cycle count


def latency():
    """Table VI by counting: cycles of a lone cell through the gates, at the paper's clock."""
    print("design       ports  cycles on the gates           ns at the paper's clock   paper's ns")
    for n in (8, 16, 32):
        k = (n - 1).bit_length()
        made = gates.crossbar(Crossbar(ports=n, buffers="shared", iterations=k, depth=2))
        cycles = lone(made)
        clock = fpga.Design(design="smislip", ports=n, width=256, speedup=1).measured_clock
        paper = dict(zip((8, 16, 32), (26.238, 33.778, 49.232), strict=True))[n]
        counted = f"{cycles} (3 + log2 N = {3 + k})"
        print(f"{'smislip':<12} {n:>5}  {counted:<28} {cycles / clock * 1e9:>16.2f} {paper:>18}")
    for n in (8, 16, 32):
        fabric = Crossbar(ports=n, buffers="gcq", depth=2, inner=2, output=2)
        made = gates.crossbar(fabric)
        fast = np.array(lone_grouped(made))
        clock = fpga.Design(design="gcq", ports=n, width=256, speedup=1).measured_clock
        time = fast / (clock * made.ratio) * 1e9
        paper = dict(zip((8, 16, 32), (172.52, 182.23, 203.627), strict=True))[n]
        counted = f"{fast.min()} to {fast.max()} fast, mean {fast.mean():.1f}"
        print(f"{'gcq':<12} {n:>5}  {counted:<28} {time.mean():>16.2f} {paper:>18}")


def lone(made) -> int:
    """Cycles from the edge that takes a lone cell from port 1 to port 2 to the edge after which it shows."""
    with Simulation(made) as simulation:
        rows = simulation.stimulus(64)
        simulation.inputs.put(rows[made.slot_cycles - 1 : made.slot_cycles], "valid_in", [2])
        at = simulation.inputs.all["cells_in__1"].at
        rows[:, at] = 4
        seen = simulation.outputs.column(simulation.run(rows), "valid_out")
    return int(np.flatnonzero(seen)[0]) - (made.slot_cycles - 1) + 1


def lone_grouped(made) -> list[int]:
    """Fast cycles of a lone cell, from the start of its slow cycle until it shows, from each port of a group."""
    out = []
    for i in range(made.group):
        for j in range(made.group):
            with Simulation(made, ratio=made.ratio) as simulation:
                rows = simulation.stimulus(64)
                simulation.inputs.put(rows[:1], "valid_in", [1 << i])
                rows[:, simulation.inputs.all[f"cells_in__{i}"].at] = 1 << j
                seen = simulation.outputs.column(simulation.run(rows, made.ratio), "valid_out")
                out.append((int(np.flatnonzero(seen)[0]) + 1) * made.ratio)
    return out


PARTS = {
    "crossbars": crossbars, "groomers": groomers, "racks": racks, "proofs": proofs, "costs": costs, "figures": figures,
    "latency": latency,
}  # fmt: skip

if __name__ == "__main__":
    for name in sys.argv[1:] or PARTS:
        PARTS[name]()
        print()
    if missed:
        sys.exit("\n".join(["missed:", *missed]))
