"""`weft wire eep` and `weft wire 802.1ad`: Ethernet frames as the two groomers of §VI send them, and back.

Frames come as hex, one to a line of the standard input, or as arguments; EEP frames come and go one to a line too, and
where a line ends means nothing to the decoder. With `--pcap` both are captures.
"""

import sys
from typing import Annotated, Any

from cyclopts import App, Parameter

from weft.cli.options import print_json, quantity, say, whole
from weft.errors import BadInput
from weft.parameters import Parameter as Field
from weft.units import parse_size
from weft.wire import ethernet
from weft.wire.eep import (
    HEADER,
    LENGTH,
    MOST,
    SOURCE,
    Fault,
    Kind,
    damage,
    header_bytes,
    require_link,
    require_most,
    segments,
)
from weft.wire.ethernet import FCS, intact, tag, untag

eep = App(name="eep", help="EEP: Ethernet frames in segments of 64 bytes, over 16 virtual links (HOTI '09, Fig. 10).")
vlan = App(name="802.1ad", help="IEEE 802.1ad: Ethernet frames with a service tag, one VLAN to a port.")

_FCS = Field("fcs", "str", ("present", "absent"), optional=True)
_DIGITS = frozenset("0123456789abcdefABCDEF")
Json = Annotated[bool, Parameter(negative="", show_default=False, help="print JSON")]
Fcs = Annotated[
    str | None,
    Parameter(
        metavar="TEXT",
        help="whether frames carry their check sequence (present, absent); unless said, hex does, a capture does not",
    ),
]
Most = Annotated[str, Parameter(metavar="SIZE", help="longest frame, check sequence included")]
Pcap = Annotated[
    tuple[str, str] | None,
    Parameter(negative="", metavar="IN OUT", help="read one pcap file and write another, instead of hex"),
]
Hex = Annotated[str, Parameter(help="frames as hex; lines of the standard input if there are none")]


@eep.command
def encode(
    *hex: Hex,
    link_id: Annotated[str, Parameter(metavar="INT", help="virtual link")] = "0",
    fcs: Fcs = None,
    most: Most = f"{MOST}B",
    pcap: Pcap = None,
    json: Json = False,
) -> int:
    """Cut Ethernet frames into EEP frames, and print these as hex, one to a line."""
    link, longest, fcs = require_link(whole("link_id", link_id)), _most(most), _FCS.read(fcs)
    if pcap is not None:
        from weft.fabrics.merchant.capture import encode as convert

        counts = convert(*pcap, link, fcs=_carried(fcs), most=longest)
        return _say_counts(pcap, counts, [], json)
    from weft.wire.eep_reference import encode as cut

    out = []
    for number, frame in _lines(hex):
        if fcs == "absent":
            frame += ethernet.fcs(frame)
        elif not intact(frame):
            say(f"weft wire eep: frame {number} does not end with its check sequence; --fcs absent adds it")
        try:
            made = cut(frame, link, longest)
        except BadInput as error:
            raise BadInput(str(error).replace("frame", f"frame {number}", 1)) from None
        out.append((frame, made))
    if json:
        print_json({
            "format": "eep",
            "link": link,
            "frames": [
                {"bytes": len(frame), "eep_frames": segments(len(frame)), "header_bytes": header_bytes(len(frame)),
                 "hex": [one.hex() for one in made]}
                for frame, made in out
            ],
        })  # fmt: skip
    else:
        for _, made in out:
            for one in made:
                print(one.hex())
    return 0


@eep.command
def decode(
    *hex: Hex,
    link_id: Annotated[str | None, Parameter(metavar="INT", help="only frames of this virtual link")] = None,
    fcs: Fcs = None,
    most: Most = f"{MOST}B",
    pcap: Pcap = None,
    json: Json = False,
) -> int:
    """Put EEP frames back into Ethernet frames, and print these as hex, one to a line.

    What is wrong with the stream is said with the offset where it begins, and decoding goes on at the next SOF; the
    exit code is then 2, or 1 if all that is wrong are check sequences. Frames with a wrong one are passed on, unless it
    is to be taken off.
    """
    link, fcs = None if link_id is None else require_link(whole("link_id", link_id)), _FCS.read(fcs)
    if pcap is not None:
        from weft.fabrics.merchant.capture import decode as convert

        counts, faults = convert(*pcap, link, fcs=_carried(fcs), most=_most(most))
        return _say_counts(pcap, counts, faults, json)
    from weft.wire.eep_reference import Decoder

    decoder, digits = Decoder(_most(most)), "".join(text for _, text in _texts(hex, pairs=False))
    found = decoder.add(bytes.fromhex(digits[: len(digits) // 2 * 2])) + decoder.end()
    if len(digits) % 2 and not (found and isinstance(found[-1], Fault)):  # half a byte of a header
        found.append(Fault(Kind.CUT, len(digits) // 2, -1, 0))
    faults = [
        one if isinstance(one, Fault) else damage(one) for one in found if isinstance(one, Fault) or not one.intact
    ]
    strip = FCS if fcs == "absent" else 0
    frames = [
        (one, one.data[: len(one.data) - strip])
        for one in found
        if not isinstance(one, Fault) and link in (None, one.link) and (one.intact or not strip)
    ]
    if json:
        print_json({
            "format": "eep",
            "frames": [
                {"link": one.link, "offset": one.offset, "bytes": len(data), "intact": one.intact, "hex": data.hex()}
                for one, data in frames
            ],
            "faults": _faults(faults),
            "skipped_bytes": decoder.skipped,
        })  # fmt: skip
    else:
        for _, data in frames:
            print(data.hex())
        sys.stdout.flush()
        _say_faults(faults)
    return _code(faults)


@eep.command
def layout(*, json: Json = False) -> int:
    """Print the fields of both header bytes, their places and where their widths come from."""
    rows: list[dict[str, Any]] = []
    for byte, part in enumerate((HEADER, LENGTH)):
        for name, width in part.fields:
            first, (paper, source) = part.offset(name), SOURCE[part.name, name]
            rows.append({"byte": byte, "field": name, "bits": width, "first": first, "last": first + width - 1,
                         "paper": paper, "source": source})  # fmt: skip
    if json:
        print_json({"formats": [HEADER.name, LENGTH.name], "fields": rows})
        return 0
    wide = max(len(row["paper"]) for row in rows)
    print(f"{'byte':<5} {'bits':<5} {'field':<9} {'in the paper':<{wide}}  the width is")
    for row in rows:
        span = f"{row['first']}" if row["bits"] == 1 else f"{row['first']}-{row['last']}"
        print(f"{row['byte']:<5} {span:<5} {row['field']:<9} {row['paper']:<{wide}}  {row['source']}")
    print("\nbit 0 is the lowest bit; byte 1 is there if LEN is 1, and then the payload has that length, else 64 bytes")
    return 0


@vlan.command(name="encode")
def put_on(
    *hex: Hex,
    vid: Annotated[str, Parameter(metavar="INT", help="VLAN of the port, from 1 to 4094")],
    pcp: Annotated[str, Parameter(metavar="INT", help="priority")] = "0",
    dei: Annotated[str, Parameter(metavar="INT", help="1 if the frame may be dropped first")] = "0",
    json: Json = False,
) -> int:
    """Put a service tag into Ethernet frames, and print them as hex, one to a line; check sequences are made anew."""
    about = {"vid": whole("vid", vid), "pcp": whole("pcp", pcp), "dei": whole("dei", dei)}
    frames = [_numbered(number, lambda frame=frame: tag(frame, **about)) for number, frame in _lines(hex)]
    return _print_tagged(json, [(about, frame) for frame in frames])


@vlan.command(name="decode")
def take_off(*hex: Hex, json: Json = False) -> int:
    """Take the outermost service tag off Ethernet frames, and print them as hex, one to a line."""
    found = [_numbered(number, lambda frame=frame: untag(frame)) for number, frame in _lines(hex)]
    return _print_tagged(json, [({name: at[name] for name in ("vid", "pcp", "dei")}, frame) for at, frame in found])


def _print_tagged(json, rows) -> int:
    if json:
        print_json(
            {"format": "802.1ad", "frames": [{**at, "bytes": len(frame), "hex": frame.hex()} for at, frame in rows]}
        )
    else:
        for _, frame in rows:
            print(frame.hex())
    return 0


def _numbered(number, work):
    try:
        return work()
    except BadInput as error:
        raise BadInput(f"frame {number}: {error}") from None


def _lines(pieces):
    """(number, bytes) of every frame: the arguments, or the lines of the standard input that are not empty."""
    for number, text in _texts(pieces, pairs=True):
        yield number, bytes.fromhex(text)


def _texts(pieces, pairs):
    """(number, hexadecimal digits) of every frame or line; without `pairs`, a byte may go on in the next."""
    if not pieces and sys.stdin.isatty():
        say("hex, one frame to a line; Ctrl-D ends")
    number = 0
    for line in pieces or sys.stdin:
        text = "".join(line.split()).removeprefix("0x")
        if not text:
            continue
        number += 1
        if not _DIGITS.issuperset(text) or (pairs and len(text) % 2):
            shown = text if len(text) <= 40 else text[:37] + "…"
            what = "frame" if pairs else "line"
            raise BadInput(f"{what} {number} must be pairs of hexadecimal digits, not {shown!r}")
        yield number, text


def _most(text) -> int:
    return require_most(quantity("most", parse_size, text))


def _carried(word) -> bool | None:
    return None if word is None else word == "present"


def _faults(faults):
    return [
        {
            "offset": one.offset,
            "kind": one.kind.name.lower(),
            "link": None if one.link < 0 else one.link,
            "text": str(one),
        }
        for one in faults
    ]


def _say_faults(faults):
    for one in faults:
        say(f"weft wire eep: {one}")


def _code(faults) -> int:
    """0, 1 if check sequences are wrong, 2 if anything else is."""
    return max((1 if one.kind.name == "DAMAGED" else 2 for one in faults), default=0)


def _say_counts(pcap, counts, faults, json) -> int:
    if json:
        print_json({"format": "eep", "in": pcap[0], "out": pcap[1], **vars(counts), "faults": _faults(faults)})
    else:
        _say_faults(faults)
        print(f"{counts.frames:,} frames of {counts.frame_bytes:,} B, {counts.eep_frames:,} EEP frames of "
              f"{counts.eep_bytes:,} B: {pcap[0]} -> {pcap[1]}")  # fmt: skip
    return _code(faults)
