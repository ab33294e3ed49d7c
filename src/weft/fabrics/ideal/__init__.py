"""The ideal switch: a bound to hold other fabrics against."""

from weft.fabrics.ideal.fabric import Ideal

__all__ = ["Ideal"]
