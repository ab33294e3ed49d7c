"""Racks on a GPU: many of one shape at once, a thread block each, with the bits of the fast kernel.

`text` is what a node does in a slot, `state` the arrays it does it to, `kernel` compiles it, `convert` takes a run from
the fast kernel's arrays to these and back, `racks` keeps a group of runs on the device.
"""
