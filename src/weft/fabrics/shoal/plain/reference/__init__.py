"""The plain kernel's twin, in plain objects and one cell at a time.

`PlainRack` is the `ReferenceRack` of `shoal/reference.py` with nodes and paths that fail and come back (§3.5), traffic
classes (App. C), damaged cells (App. D), clocks that are off (§3.4) and an end-to-end transport. Each is a class in a
module of its own, named as the kernel's is; `rack` puts them together. What the paper leaves open is in `notes.md`.
"""

from weft.fabrics.shoal.plain.reference.failures import Change
from weft.fabrics.shoal.plain.reference.pairs import CAUSES, Ack
from weft.fabrics.shoal.plain.reference.rack import PlainRack

__all__ = ["CAUSES", "Ack", "Change", "PlainRack"]
