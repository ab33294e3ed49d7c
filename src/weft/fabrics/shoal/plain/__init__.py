"""Shoal's plain kernel: the paper's rules, and besides them failures, damaged cells, clocks, classes and a transport.

It serves racks in which any of these is asked for; where nothing goes wrong it moves the same cells as the fast one.
`state` is the data dictionary, `kernel` the loop over slots. A slot has the fast kernel's phases, in `send` and
`receive`. The rest is by subject: `pairs`, `failures`, `damage` (and clocks), `classes`, `transport`. `arrays` lays
out, `convert` takes a rack over from the fast kernel before a fault, `settle` tells when all know of it, `give_back`
hands it back, and `reference` is the twin, split in the same way.

The legend: i sender, j receiver, d final destination, f application flow, h pair (of one traffic class), k traffic
class, p place in the epoch, r the place of the other direction, q = p * n + i the link of node i in place p,
row = q * classes + k a queue.
"""
