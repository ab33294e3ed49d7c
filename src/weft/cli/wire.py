"""`weft wire`: what goes over the wire, from numbers to bytes and back."""

import json as jsonlib
from typing import Annotated

from cyclopts import App, Parameter

from weft.cli.options import quantity
from weft.errors import BadInput
from weft.units import parse_size
from weft.wire.shoal import CELL, CODES, CRC, HEADER, SOURCE, Cell, missed_pairs
from weft.wire.shoal import decode as read

app = App(name="wire", help="Bits on the wire: encode and decode headers and cells, and print their layout.")
shoal = App(name="shoal", help="The cells of Shoal: an 8-byte header (Fig. 5) and a payload.")
app.command(shoal)

Json = Annotated[bool, Parameter(negative="")]
Flag = Annotated[bool, Parameter(negative="")]


@shoal.command
def encode(
    *,
    dst: int,
    src: int,
    seq: int = 0,
    feedback: str = "nothing",
    start: Flag = False,
    end: Flag = False,
    dropped: Flag = False,
    payload: str = "",
    cell: str = "64B",
    json: Json = False,
):
    """Make a cell, CRC included, and print its bytes as hex.

    Parameters
    ----------
    dst
        Destination of the cell's flow; an empty cell has its source here.
    src
        Source of the cell's flow.
    seq
        Sequence number within the flow.
    feedback
        Rate limit feedback: a number of cells, nothing, or not-applicable.
    start
        The cell is the first of its packet.
    end
        The cell is the last of its packet.
    dropped
        The last cell that came from the receiver was dropped.
    payload
        Payload as hex; padded with zeros.
    cell
        Size of the cell.
    json
        Print JSON.
    """
    size = quantity("cell", parse_size, cell)
    made = Cell(
        dst=dst, src=src, seq=seq, feedback=_feedback(feedback), start=start, end=end, dropped=dropped,
        payload=_bytes("payload", [payload]),
    )  # fmt: skip
    data = made.encode(size)
    _print(json, data, *read(data), text=data.hex())


@shoal.command
def decode(*hex: str, json: Json = False):
    """Say what a cell means, or a header alone; a damaged cell is decoded too.

    Parameters
    ----------
    hex
        The cell's bytes as hex, in one piece or several.
    json
        Print JSON.
    """
    data = _bytes("hex", hex)
    cell, intact = read(data)
    _print(json, data, cell, None if len(data) == HEADER.size else intact)


@shoal.command
def layout(*, json: Json = False):
    """Print the header's fields, their places and where their widths come from.

    Parameters
    ----------
    json
        Print JSON.
    """
    rows = [
        {"field": name, "bits": width, "first": HEADER.offset(name), "last": HEADER.offset(name) + width - 1,
         "paper": SOURCE[name][0], "source": SOURCE[name][1]}
        for name, width in HEADER.fields
    ]  # fmt: skip
    missed, pairs = missed_pairs(), 8 * CELL * (8 * CELL - 1) // 2
    if json:
        crc = {"name": CRC.name, "poly": CRC.poly, "init": CRC.init, "xor_out": CRC.xor_out,
               "double_errors": pairs, "double_errors_missed": missed}  # fmt: skip
        print(jsonlib.dumps({"format": HEADER.name, "bytes": HEADER.size, "fields": rows, "crc": crc,
                             "feedback_codes": CODES}, indent=1, ensure_ascii=False))  # fmt: skip
        return
    wide = max(len(row["paper"]) for row in rows)
    print(f"{'bits':<7} {'field':<9} {'width':>5}  {'in the paper':<{wide}}  the width is")
    for row in rows:
        span = f"{row['first']}" if row["bits"] == 1 else f"{row['first']}-{row['last']}"
        print(f"{span:<7} {row['field']:<9} {row['bits']:>5}  {row['paper']:<{wide}}  {row['source']}")
    print()
    print(f"{HEADER.size} bytes; bit 0 is the lowest bit of the first byte")
    print(f"feedback {CODES['nothing']} is nothing received, {CODES['not-applicable']} not applicable")
    print(f"crc is {CRC.name}: polynomial {CRC.poly:#04x}, start {CRC.init:#04x}, inverted at the end; it covers")
    print(f"the other {CELL - 1} bytes of a cell and misses {missed} of {pairs:,} double errors")


def _feedback(text):
    if text in CODES:
        return CODES[text]
    try:
        return int(text)
    except ValueError:
        raise BadInput(f"feedback must be a whole number, {' or '.join(CODES)}, not {text!r}") from None


def _bytes(name, pieces):
    text = "".join("".join(pieces).split()).removeprefix("0x")
    try:
        if not text.isascii():
            raise ValueError
        return bytes.fromhex(text)
    except ValueError:
        shown = text if len(text) <= 40 else text[:37] + "…"
        raise BadInput(f"{name} must be pairs of hexadecimal digits, not {shown!r}") from None


def _print(json, data, cell, intact, text=None):
    header, payload = data[: HEADER.size], data[HEADER.size :]
    values = HEADER.unpack(header)
    if json:
        print(jsonlib.dumps({"format": HEADER.name, "hex": data.hex(), "fields": values, "empty": cell.empty,
                             "intact": intact, "payload": payload.hex()}, indent=1))  # fmt: skip
        return
    if text is not None:
        print(text)
        return
    means = {code: word.replace("-", " ") for word, code in CODES.items()}
    for name, value in values.items():
        note = f"  {means[value]}" if name == "feedback" and value in means else ""
        if name == "crc":
            value, note = f"{value:#04x}", {True: "  right", False: "  wrong: the cell is damaged", None: ""}[intact]
        print(f"{name:<9} {value}{note}")
    print(f"{'payload':<9} {'none: an empty cell' if cell.empty else payload.hex() or 'not given'}")
