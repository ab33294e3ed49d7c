"""What can be proved of a groomer without running it (§VI-A): when cut-through never runs out of bytes.

With N ports, b ticks to a byte on a port and β on the trunk, an EEP frame takes at most F = 65 β on the trunk, and a
segment τ = 64 b to come in. Round robin serves the head of a queue within N F. From that follows that no egress frame
runs out of bytes if N F ≤ τ and the receiver waits P ≥ (N-1) F - 8 b after the first EEP frame; docs/fabrics/groomer.md
has the proof, and why neither can be less. The paper names no wait.
"""

from fractions import Fraction

from weft.wire import eep, ethernet


def round_time(ports: int, trunk_byte: int) -> int:
    """N F: ticks within which the first of a queue has gone."""
    return ports * eep.LARGEST * trunk_byte


def playout(ports: int, port_byte: int, trunk_byte: int) -> int:
    """Ticks from the first EEP frame to its Ethernet frame that are enough, given a trunk as fast as `needed`."""
    return max(0, (ports - 1) * eep.LARGEST * trunk_byte - ethernet.PREAMBLE * port_byte)


def needed(protocol: str, ports: int) -> Fraction:
    """Rate of the trunk over that of a port from which on no load is too much, whatever the sizes.

    EEP needs 65/64 of all ports together, because that is what it needs within a frame. 802.1ad adds a tag to every
    frame, and to the shortest most.
    """
    if protocol == "eep":
        return ports * Fraction(eep.LARGEST, eep.SEGMENT)
    least = ethernet.wire_size(ethernet.LEAST)
    return ports * Fraction(least + ethernet.TAG.size, least)


def carried(protocol: str, size: int) -> Fraction:
    """Bytes of the trunk's time that a byte of a port's time becomes, back to back frames of one size."""
    if protocol == "eep":
        return Fraction(size + eep.header_bytes(size), ethernet.wire_size(size))
    return Fraction(ethernet.wire_size(size + ethernet.TAG.size), ethernet.wire_size(size))
