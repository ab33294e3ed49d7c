"""Ethernet's flow control frames: 802.3x PAUSE, 802.1Qbb priority flow control, and ours with a class of 11 bits.

All three are MAC control frames of 64 bytes, FCS included. A time is a number of quanta, 512 bit times of the link
each; 0 lets the sender go on at once. TDMA over Ethernet (EuroSys '12, §5.1) uses them the other way around: everything
is paused but the class that a slot belongs to. The paper widens the class to 11 bits and prints no layout, so
`EXTENDED` is ours:

opcode        0xFFFE, which 802.3 (Annex 31C) gives to organisations; 0x0101 would be taken for a PFC frame by a NIC
organisation  24 bits with the local bit set: nobody's registered identifier
rest          whether `others` is meant; without it only the class that is named changes
class         11 bits
time, others  quanta for the class, and for all other classes of the host
seq           a running number, so that a host can tell a late frame from a new one; the older frames have none
"""

import re
from dataclasses import dataclass, fields

from weft.errors import BadInput, require
from weft.units import Rate, s
from weft.wire.crc import CRC32
from weft.wire.format import Format

ETHERNET = Format("ethernet", (("dst", 48), ("src", 48), ("type", 16)), network=True)
PAUSE = Format("pause", (("opcode", 16), ("time", 16)), network=True)
PFC = Format("pfc", (("opcode", 16), ("vector", 16), *((f"time{c}", 16) for c in range(8))), network=True)
EXTENDED = Format(
    "extended",
    (
        ("opcode", 16),
        ("organisation", 24),
        ("version", 8),
        ("reserved", 4),
        ("rest", 1),
        ("class", 11),
        ("time", 16),
        ("others", 16),
        ("seq", 32),
    ),
    network=True,
)
SOURCE = {
    PAUSE: "802.3 Annex 31B",
    PFC: "802.1Qbb, 802.3 Annex 31D; bit c of the vector says that time c is meant, its high byte is 0",
    EXTENDED: "ours: the paper says only that the class has 11 bits",
}

TYPE = 0x8808  # MAC control
OPCODES = {PAUSE: 0x0001, PFC: 0x0101, EXTENDED: 0xFFFE}
ORGANISATION, VERSION = 0x7A6566, 1
CLASSES = {"802.3x": 1, "802.1Qbb": 2**3, "extended": 2**11}  # §5.1: bits of the class field
BRIDGE = 0x0180C2000001  # the address of whoever is at the other end of the link; switches do not forward it
SENDER = 0x020000000000  # a local address, for frames whose sender nobody looks at

QUANTUM_BITS = 512  # the unit of a pause
LONGEST_QUANTA = 2**16 - 1
FRAME = 64  # bytes of a frame, FCS included
BARE = 60  # bytes without it
GAP = 20  # bytes of preamble and inter-frame gap


def quantum(link: Rate) -> float:
    """One unit of pause time, in ps."""
    return QUANTUM_BITS * s / link


@dataclass(frozen=True, kw_only=True)
class _Frame:
    """What every flow control frame has."""

    dst: int = BRIDGE
    src: int = SENDER

    def encode(self, fcs: bool = False) -> bytes:
        """The frame as 60 bytes, or as 64 with its FCS."""
        head = ETHERNET.pack(dst=self.dst, src=self.src, type=TYPE)
        data = (head + self._body()).ljust(BARE, b"\0")
        return data + checksum(data) if fcs else data

    def _body(self) -> bytes:
        """What follows the EtherType, without padding."""
        raise NotImplementedError  # derived classes say it


@dataclass(frozen=True, kw_only=True)
class Pause(_Frame):
    """802.3x: all traffic of the sender stops for `time` quanta."""

    time: int = LONGEST_QUANTA

    def __post_init__(self):
        _quanta("time", self.time)

    def _body(self):
        return PAUSE.pack(opcode=OPCODES[PAUSE], time=self.time)


@dataclass(frozen=True, kw_only=True)
class Pfc(_Frame):
    """802.1Qbb: every class with a time stops for so many quanta; None leaves a class as it is."""

    times: tuple[int | None, ...] = (None,) * 8

    def __post_init__(self):
        require(len(self.times) == 8, "times", "one for each of 8 classes", len(self.times))
        for c, time in enumerate(self.times):
            if time is not None:
                _quanta(f"the time of class {c}", time)

    @classmethod
    def only(cls, which: int, **others) -> "Pfc":
        """A frame that pauses every class but `which`."""
        require(which in range(8), "class", "from 0 to 7 in a PFC frame", which)
        return cls(times=tuple(0 if c == which else LONGEST_QUANTA for c in range(8)), **others)

    def _body(self):
        vector = sum(1 << c for c, time in enumerate(self.times) if time is not None)
        times = {f"time{c}": time or 0 for c, time in enumerate(self.times)}
        return PFC.pack(opcode=OPCODES[PFC], vector=vector, **times)


@dataclass(frozen=True, kw_only=True)
class Extended(_Frame):
    """Our PFC: class `which` stops for `time` quanta, and all others for `others`; None leaves them as they are."""

    which: int
    time: int = 0
    others: int | None = LONGEST_QUANTA
    seq: int = 0

    def __post_init__(self):
        require(self.which in range(CLASSES["extended"]), "class", "from 0 to 2047", self.which)
        require(self.seq in range(2**32), "seq", "from 0 to 2^32 - 1", self.seq)
        _quanta("time", self.time)
        if self.others is not None:
            _quanta("others", self.others)

    def _body(self):
        return EXTENDED.pack(
            opcode=OPCODES[EXTENDED], organisation=ORGANISATION, version=VERSION, reserved=0, time=self.time,
            rest=self.others is not None, others=self.others or 0, seq=self.seq, **{"class": self.which},
        )  # fmt: skip


def checksum(data: bytes) -> bytes:
    """Ethernet's FCS of a frame without one, as it goes over the wire."""
    return CRC32.compute(data).to_bytes(4, "little")


def decode(data: bytes) -> tuple[_Frame, bool | None]:
    """The frame in `data`, and whether its FCS is right; None where it has none.

    Like a NIC it does not look at padding, at the vector's high byte, or at the time of a class that the vector leaves
    out. A frame with a wrong FCS is read too.
    """
    require(len(data) in (BARE, FRAME), "a frame", f"{BARE} bytes, or {FRAME} with its FCS", len(data))
    head = ETHERNET.unpack(data[: ETHERNET.size])
    kind = head.pop("type")
    if kind != TYPE:
        raise BadInput(f"the EtherType of a flow control frame must be {TYPE:#06x}, not {kind:#06x}")
    opcode = int.from_bytes(data[ETHERNET.size : ETHERNET.size + 2], "big")
    layout = next((made for made, known in OPCODES.items() if known == opcode), None)
    if layout is None:
        raise BadInput(f"the opcode must be one of {_hex(OPCODES.values())}, not {opcode:#06x}")
    found = layout.unpack(data[ETHERNET.size : ETHERNET.size + layout.size])
    intact = None if len(data) == BARE else checksum(data[:BARE]) == data[BARE:]
    if layout is PAUSE:
        return Pause(time=found["time"], **head), intact
    if layout is PFC:
        times = tuple(found[f"time{c}"] if found["vector"] >> c & 1 else None for c in range(8))
        return Pfc(times=times, **head), intact
    own, who = f"{ORGANISATION:06x} version {VERSION}", f"{found['organisation']:06x} version {found['version']}"
    if who != own:
        raise BadInput(f"an extended frame must be {own}, not {who}")
    others = found["others"] if found["rest"] else None
    return Extended(which=found["class"], time=found["time"], others=others, seq=found["seq"], **head), intact


def meaning(frame: _Frame) -> dict:
    """The frame's values by name, addresses as people write them."""
    out = {"frame": type(frame).__name__.lower()}
    for field in fields(frame):
        value = getattr(frame, field.name)
        out["class" if field.name == "which" else field.name] = value
    return out | {"dst": show_address(frame.dst), "src": show_address(frame.src)}


def parse_address(text: str) -> int:
    """The 48 bits of an address such as 01:80:c2:00:00:01."""
    if not re.fullmatch(r"[0-9A-Fa-f]{2}([:-]?[0-9A-Fa-f]{2}){5}", str(text)):
        raise BadInput(f"an address must look like 01:80:c2:00:00:01, not {text!r}")
    return int(re.sub("[:-]", "", text), 16)


def show_address(address: int) -> str:
    return address.to_bytes(6, "big").hex(":")


def _quanta(name, value):
    require(value in range(LONGEST_QUANTA + 1), name, f"from 0 to {LONGEST_QUANTA} quanta", value)


def _hex(values):
    return ", ".join(f"{value:#06x}" for value in values)
