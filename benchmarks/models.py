"""How long the cost models take for a sweep of a thousand, beside the time we expect of each.

Run: python benchmarks/models.py
"""

import time

import numpy as np

from weft.models import fpga, merchant, shoal, stardust, tables, tdma
from weft.models.compare import compare
from weft.models.parts import Catalogue
from weft.topology.cabling import Wiring
from weft.units import us

MERCHANT = Catalogue.named("merchant-2009")
MODELS = {"shoal": shoal, "merchant": merchant, "stardust": stardust, "fpga": fpga, "tdma": tdma}


def racks():
    rack = shoal.PricedRack(nodes=np.arange(48, 1048))
    return rack.watts(), rack.cost_ratio(), rack.buffer_total


def fat_trees():
    switch = merchant.Switch(radix=np.arange(8, 8008, 8))
    return MERCHANT.price(switch.chips_and_optics()), switch.bisection


def networks():
    return stardust.against(np.arange(1000, 1_001_000, 1000), 4)


def crossbars():
    return [fpga.Design(design=design, ports=np.arange(4, 4004, 4)).memory_bits for design in fpga.DESIGNS]


def slots():
    return tdma.Slots(slot=np.arange(1, 1001) * us).efficiency


def printed_tables():
    return [model.table(key) for paper, model in MODELS.items() for key in tables.printed(paper)]


def wrong_wiring():
    return Wiring.right(24).swap(0, 39).swap(100, 400).swap(5, 863).check()


def side_by_side():
    return compare(512)


GOALS_MS = {
    racks: 5,
    fat_trees: 5,
    networks: 10,
    crossbars: 5,
    slots: 1,
    wrong_wiring: 20,
    side_by_side: 50,
    printed_tables: 1000,
}

if __name__ == "__main__":
    for work, goal in GOALS_MS.items():
        work()  # first calls load catalogues
        times = []
        for _ in range(5):
            start = time.perf_counter()
            work()
            times.append(1e3 * (time.perf_counter() - start))
        best = min(times)
        print(f"{work.__name__:15} {best:8.2f} ms   goal {goal:5} ms   {'ok' if best <= goal else 'SLOW'}")
