"""Packet-switched networks with TCP, DCTCP, MPTCP, NDP and DCQCN."""

from weft.fabrics.packet.fabric import Packet

__all__ = ["Packet"]
