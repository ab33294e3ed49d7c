"""A fat tree of merchant silicon and the groomers in its middle (HOTI '09)."""

from weft.fabrics.merchant.fabric import Merchant

__all__ = ["Merchant"]
