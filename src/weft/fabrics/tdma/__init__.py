"""Practical TDMA for Datacenter Ethernet (EuroSys '12): a fabric manager that tells hosts when to send, and to whom."""

from weft.fabrics.tdma.fabric import TDMA

__all__ = ["TDMA"]
