"""Switches on a GPU: many of one shape at once, a thread block each, a port a thread, with the bits of the kernels.

`text` is what a port does between two barriers of a slot, `state` where the words lie that it does it to, `kernel`
compiles it, `switches` keeps a group of runs on the device. The words are those of `CrossbarState`, each queue and each
free cell where the kernels would have it: a run goes to the device and back as it is.
"""
