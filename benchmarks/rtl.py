"""How many clock cycles a second the gates run, in processor time, the build left out.

python benchmarks/rtl.py        two or three minutes the first time, while designs are compiled
"""

from weft.rtl.check_crossbar import arrivals
from weft.rtl.check_crossbar import drive as drive_crossbar
from weft.rtl.check_shoal import commands, expect
from weft.rtl.check_shoal import drive as drive_shoal
from weft.rtl.designs import CrossbarGates, ShoalDrive, ShoalGates
from weft.workload.traffic import Bernoulli

EXPECTED = {"shoal 8 nodes": 200_000}  # cycles per second


def main():
    print("design                     cycles   cycles/s   expected")
    for name, made, took in measured():
        print(f"{name:<24} {made:>8,} {made / took:>10,.0f}   {EXPECTED.get(name, '-')}")


def measured():
    """(design, cycles, seconds) of busy designs."""
    rack = ShoalGates(nodes=8, ports=4, seats=16).component()
    slots = 400_000 // rack.slot_cycles
    expected = expect(rack, ShoalDrive().flows(8, slots, 1), slots)
    _, (_, took, cycles, _) = drive_shoal(rack, commands(rack, expected.recorder, slots))
    yield "shoal 8 nodes", cycles, took
    for buffers in ("voq", "shared", "gcq"):
        made = CrossbarGates(ports=8, buffers=buffers).component()
        valid, outputs = arrivals(Bernoulli(load=0.9, slots=200_000).draw(nodes=8, seed=1))
        _, (_, took, cycles, _) = drive_crossbar(made, valid, outputs)
        yield f"crossbar {buffers} 8 ports", cycles, took


if __name__ == "__main__":
    main()
