"""A shared bus, on which nodes send in turn."""

from weft_bus.fabric import Bus

__all__ = ["Bus"]
