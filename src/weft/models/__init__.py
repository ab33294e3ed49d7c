"""What it would cost: parts, prices, watts, rack units, cables and memory, with no simulation.

A design lists its parts (`Bill`), a catalogue prices them (`Catalogue`), and every number a paper prints
stands beside ours (`tables`). One module per system: shoal, merchant, stardust, fpga, tdma.
"""
