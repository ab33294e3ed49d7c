"""Captures of packets, pcap files: what is read is written back as it was, byte order and resolution included.

dpkt knows the format; its `Reader` drops how long a packet was before the capture cut it off, and so the headers are
read one by one.
"""

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from weft.errors import BadInput, WeftError
from weft.files import reason, replaced

ETHERNET = 1  # link types, as registered by tcpdump.org
EEP = 147  # USER0: there is none for EEP
_KNOWN = {ETHERNET: "Ethernet", EEP: "EEP, as USER0"}
_NG = 0x0A0D0D0A  # how a pcapng file begins
_FCS_KNOWN = 1 << 28  # above the link type: whether the file says how long an FCS its packets carry
_MOST = 1 << 26  # bytes of a packet beyond which its header is damaged


@dataclass(frozen=True)
class Packet:
    """What was captured of one packet, at a time in seconds and their fractions (µs or ns, as the file has it)."""

    seconds: int
    fraction: int
    data: bytes
    size: int  # bytes it had on the wire


@dataclass(frozen=True)
class Header:
    """What a file says of all its packets: dpkt's header, whose type has the byte order, and the link type in it."""

    fields: Any
    link_type: int

    @property
    def fcs(self) -> bool | None:
        """Whether packets carry a check sequence of 4 bytes; None if the file does not say."""
        flags = self.fields.linktype >> 16 << 16
        return bool(flags >> 29) if flags & _FCS_KNOWN else None

    def of(self, link_type: int) -> "Header":
        """The same for packets of another link type."""
        return replace(self, link_type=link_type)

    def __bytes__(self) -> bytes:
        old = self.fields
        values = {
            name: getattr(old, name) for name in ("magic", "v_major", "v_minor", "thiszone", "sigfigs", "snaplen")
        }
        return bytes(type(old)(**values, linktype=old.linktype >> 16 << 16 | self.link_type))


def _pcap():
    try:
        from dpkt import pcap
    except ImportError:
        raise WeftError("captures need the package dpkt, which `pip install weft[wire]` brings") from None
    return pcap


@contextmanager
def reading(path, link_type: int):
    """Yield the header and an iterator over the packets of a capture, which must be of `link_type`."""
    try:
        file = open(path, "rb")  # noqa: SIM115
    except (OSError, ValueError) as error:  # a NUL in the name
        raise BadInput(f"{path} must be a pcap file that can be read: {reason(error)}") from None
    with file:
        header, order = _header(path, file)
        if header.link_type != link_type:
            found = _KNOWN.get(header.link_type)
            found = f"{header.link_type} ({found})" if found else str(header.link_type)
            raise BadInput(f"the link type of {path} must be {link_type} ({_KNOWN[link_type]}), not {found}")
        yield header, _packets(path, file, order)


def _header(path, file):
    """The header of the file, and dpkt's class for those of its packets."""
    pcap = _pcap()
    start = file.read(pcap.FileHdr.__hdr_len__)
    magic = int.from_bytes(start[:4], "big")
    if magic == _NG:
        raise BadInput(f"{path} must be a pcap file, not pcapng, which `editcap -F pcap` makes one")
    if magic not in pcap.MAGIC_TO_PKT_HDR or len(start) < pcap.FileHdr.__hdr_len__:
        found = f"one that begins with {start[:4].hex()}" if len(start) >= 4 else f"one of {len(start)} bytes"
        raise BadInput(f"{path} must be a pcap file, not {found}")
    order = pcap.MAGIC_TO_PKT_HDR[magic]
    fields = (pcap.LEFileHdr if issubclass(order, pcap.LEPktHdr | pcap.LEPktModHdr) else pcap.FileHdr)(start)
    if order not in (pcap.PktHdr, pcap.LEPktHdr):
        raise BadInput(f"{path} must be a plain pcap file, not one of the modified format {fields.magic:#010x}")
    return Header(fields, fields.linktype & 0xFFFF), order


def _packets(path, file, order):
    number = 0
    while start := file.read(order.__hdr_len__):
        number += 1
        if len(start) < order.__hdr_len__:
            raise BadInput(f"{path} must be whole, not end within the header of packet {number}")
        one = order(start)
        if one.caplen > min(one.len, _MOST):
            raise BadInput(f"packet {number} of {path} must have at most its {one.len} bytes, not {one.caplen}")
        data = file.read(one.caplen)
        if len(data) < one.caplen:
            raise BadInput(f"{path} must be whole, not end within packet {number}")
        yield Packet(one.tv_sec, one.tv_usec, data, one.len)


@contextmanager
def writing(path, header: Header):
    """Yield a function that adds a packet to a capture, which takes its place when the block ends well."""
    pcap = _pcap()
    order = pcap.LEPktHdr if isinstance(header.fields, pcap.LEFileHdr) else pcap.PktHdr
    with replaced(path) as fresh, open(fresh, "wb") as file:
        file.write(bytes(header))

        def add(packet: Packet) -> None:
            about = order(tv_sec=packet.seconds, tv_usec=packet.fraction, caplen=len(packet.data), len=packet.size)
            file.write(bytes(about) + packet.data)

        yield add
