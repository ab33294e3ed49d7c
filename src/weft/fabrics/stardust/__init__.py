"""Stardust (NSDI '19): Fabric Adapters at the edge, cell switches between them, and credits from the egress."""

from weft.fabrics.stardust.fabric import Stardust

__all__ = ["Stardust"]
