"""Shoal: a rack of nodes facing each other in turn through circuit switches (NSDI '19)."""

from weft.fabrics.shoal.fabric import Shoal

__all__ = ["Shoal"]
