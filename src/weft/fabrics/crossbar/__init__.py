"""Switches that forward cells from inputs to outputs: crossbars with every common buffer and scheduler."""

from weft.fabrics.crossbar.fabric import Crossbar

__all__ = ["Crossbar"]
