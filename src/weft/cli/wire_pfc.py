"""`weft wire pfc`: Ethernet's flow control frames, from numbers to bytes and back."""

from dataclasses import dataclass
from typing import Literal

from cyclopts import App

from weft.cli.flags import described, group
from weft.cli.options import print_json
from weft.errors import BadInput, require
from weft.parameters import Parameter
from weft.units import Gbps, Rate, param, show_time
from weft.wire import pfc as wire

LAYOUTS = {"pause": wire.PAUSE, "pfc": wire.PFC, "extended": wire.EXTENDED}
FLAGS = {"pause": ("time",), "pfc": ("times", "which"), "extended": ("which", "time", "others", "seq")}
CHECKED = {None: "not given", True: "right", False: "wrong: the frame is damaged"}


@dataclass(frozen=True, kw_only=True)
class Encode:
    """Make a frame and print its bytes as hex."""

    frame: Literal["pause", "pfc", "extended"] = param("pfc", "802.3x, 802.1Qbb, or ours with a class of 11 bits")
    which: int | None = param(None, "the class that may send while all others pause, as TDMA uses frames", also="class")
    time: int | None = param(None, "quanta of 512 bit times; 65535 for a pause, 0 for an extended frame's class")
    times: str | None = param(
        None, "quanta for some of PFC's 8 classes, as in 0=65535,3=0; others are left as they are"
    )
    others: str | None = param(
        None, "quanta for all classes but an extended frame's own, or unchanged; 65535 if not given"
    )
    seq: int | None = param(None, "running number of an extended frame")
    dst: str = param(wire.show_address(wire.BRIDGE), "address the frame is for")
    src: str = param(wire.show_address(wire.SENDER), "address it comes from")
    fcs: bool = param(False, "add the frame check sequence: 64 bytes, not 60")

    def made(self):
        """The frame."""
        given = {name: getattr(self, name) for name in ("which", "time", "times", "others", "seq")}
        given = {name: value for name, value in given.items() if value is not None}
        for name in given.keys() - set(FLAGS[self.frame]):
            said = "class" if name == "which" else name
            raise BadInput(f"{said} must be left out of a frame of kind {self.frame}, not {given[name]!r}")
        ends = {"dst": wire.parse_address(self.dst), "src": wire.parse_address(self.src)}
        return {"pause": _pause, "pfc": _pfc, "extended": _extended}[self.frame](given, ends)


@dataclass(frozen=True, kw_only=True)
class Decode:
    """Say what a frame means, of 60 bytes or of 64 with its FCS."""

    hex: tuple[str, ...] = param(
        (), "the frame's bytes as hex, in one piece or several", positional=True, metavar="HEX"
    )
    link: Rate = param(10 * Gbps, "rate of the link, which decides how long a quantum is")

    def __post_init__(self):
        require(self.link > 0, "link", "more than 0", self.link)


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Print the fields of the three frames, which follow Ethernet's own, and where they come from."""


def pfc() -> App:
    """The command."""
    about = "Flow control frames of Ethernet: PAUSE, PFC, and ours with a class of 11 bits."
    commands = {
        "encode": described(_encode, "encode", fields=Encode),
        "decode": described(_decode, "decode", frame=Decode),
        "layout": described(_layout, "layout", layout=Layout),
    }
    return group("pfc", about, commands)


def _encode(fields: Encode, json: bool) -> None:
    made = fields.made()
    data = made.encode(fields.fcs)
    if json:
        _json(data, made, True if fields.fcs else None)
    else:
        print(data.hex())


def _decode(frame: Decode, json: bool) -> None:
    data = Parameter("hex", "hex").read("".join(frame.hex))
    made, intact = wire.decode(data)
    if json:
        _json(data, made, intact)
        return
    for name, value in wire.meaning(made).items():
        if name == "times":
            for c, quanta in enumerate(value):
                print(f"class {c}  {_length(quanta, frame.link)}")
        else:
            print(f"{name:<7}  {_length(value, frame.link) if name in ('time', 'others') else value}")
    print(f"{'fcs':<7}  {CHECKED[intact]}")


def _layout(layout: Layout, json: bool) -> None:
    rows = {
        name: [
            {"field": field, "bits": bits, "byte": wire.ETHERNET.size + made.offset(field) // 8}
            for field, bits in made.fields
        ]
        for name, made in LAYOUTS.items()
    }
    if json:
        print_json({"ethertype": wire.TYPE, "opcodes": {name: wire.OPCODES[made] for name, made in LAYOUTS.items()},
                    "bytes": wire.FRAME, "fields": rows})  # fmt: skip
        return
    for name, made in LAYOUTS.items():
        print(f"{name}, opcode {wire.OPCODES[made]:#06x}: {wire.SOURCE[made]}")
        print(f"  {'byte':>4}  {'bits':>4}  field")
        for row in rows[name]:
            print(f"  {row['byte']:>4}  {row['bits']:>4}  {row['field']}")
        print()
    print(f"bytes 0 to 13 are the addresses and the EtherType {wire.TYPE:#06x}; zeros follow up to byte 59, then the")
    print("FCS; the most significant bit of a field comes first")


def _pause(given, ends):
    return wire.Pause(**given, **ends)


def _pfc(given, ends):
    if "which" in given:
        require("times" not in given, "times", "left out where a class is given", given.get("times"))
        return wire.Pfc.only(given["which"], **ends)
    times: list[int | None] = [None] * 8
    for part in given.get("times", "").split(","):
        if not part.strip():
            continue
        one, sign, quanta = (word.strip() for word in part.partition("="))
        if not (sign and one.isdecimal() and one.isascii() and quanta.isdecimal() and quanta.isascii()):
            raise BadInput(f"times must look like 0=65535,3=0, not {given['times']!r}")
        require(int(one) in range(8), "class", "from 0 to 7 in a PFC frame", int(one))
        times[int(one)] = int(quanta)
    return wire.Pfc(times=tuple(times), **ends)


def _extended(given, ends):
    require("which" in given, "class", "given for an extended frame", None)
    others = given.pop("others", str(wire.LONGEST_QUANTA))
    if others != "unchanged" and not (others.isascii() and others.isdecimal()):
        raise BadInput(f"others must be a number of quanta or unchanged, not {others!r}")
    return wire.Extended(others=None if others == "unchanged" else int(others), **given, **ends)


def _json(data, made, intact):
    print_json(wire.meaning(made) | {"intact": intact, "hex": data.hex()})


def _length(quanta, rate):
    if quanta is None:
        return "unchanged"
    return f"{quanta} quanta, {show_time(round(quanta * wire.quantum(rate)))}" if quanta else "0: may send"
