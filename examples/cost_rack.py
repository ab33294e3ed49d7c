"""Where a Shoal rack starts to pay: the price of a circuit switch against the size of the rack."""

import numpy as np

from weft.models.shoal import PricedRack

nodes = np.array([100, 200, 512, 700, 1000, 1500, 2048])
racks = {nic: PricedRack(nodes=nodes, nic=nic) for nic in (2, 3)}

print("nodes   watts saved   same cost at (NIC x2, x3)   40 % cheaper at (NIC x2, x3)")
watts = racks[2].watts()
columns = [racks[nic].switch_price(saving) for saving in (0, 0.4) for nic in (2, 3)]
for n, shoal, packet, *prices in zip(nodes, watts["shoal"], watts["packet"], *columns, strict=True):
    same2, same3, less2, less3 = (f"{100 * price:.1f} %" for price in prices)
    print(f"{n:5}   {packet - shoal:9.0f} W   {same2:>11}{same3:>12}   {less2:>13}{less3:>13}")
