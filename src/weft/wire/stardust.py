"""What crosses a link of Stardust: cells, credits, requests and reachability messages, as bit layouts.

The paper gives sizes of cells (256 B) and of reachability messages (24 B for a bitmap of 128, Table 4) and says what is
in them; it gives no layout and no size of a cell's header. The layouts here are ours: as narrow as 16,384 adapters of
256 ports and four classes allow.
"""

from weft.errors import BadInput
from weft.wire.crc import CRC32
from weft.wire.format import Format

ADAPTERS = 1 << 14
KINDS = {"data": 0, "request": 1, "credit": 2, "reachability": 3}

CELL_HEADER = Format(
    "stardust_cell",
    (
        ("kind", 2),
        ("fci", 1),  # §4.2: some queue on the way was above its threshold
        ("last", 1),  # of its burst: the one cell that may be short
        ("class", 2),
        ("dst", 14),  # Fabric Adapter, all that an element looks at
        ("port", 8),  # of that adapter: with class and source, the VOQ
        ("src", 14),
        ("seq", 16),  # of the cell within its VOQ, for reassembly
        ("length", 14),  # payload bytes: no packet of a burst ends elsewhere than in a cell
        ("crc", 8),
    ),
    network=True,
)
REQUEST = Format(
    "stardust_request",
    (("kind", 2), ("class", 2), ("spare", 4), ("dst", 14), ("port", 8), ("src", 14), ("bytes", 20), ("crc", 32)),
    network=True,
)
CREDIT = Format(
    "stardust_credit",
    (("kind", 2), ("class", 2), ("spare", 4), ("dst", 14), ("port", 8), ("src", 14), ("bytes", 20), ("crc", 32)),
    network=True,
)
REACHABILITY = Format(
    "stardust_reachability",
    (("kind", 2), ("faulty", 1), ("spare", 5), ("block", 8), ("src", 16), ("bitmap", 128), ("crc", 32)),
    network=True,
)
FORMATS = {"cell": CELL_HEADER, "request": REQUEST, "credit": CREDIT, "reachability": REACHABILITY}
HEADER = CELL_HEADER.size  # 10 bytes
CONTROL = CREDIT.size  # 12 bytes, of a request as of a credit


def encode(form: str, **values: int) -> bytes:
    """A control message with its CRC-32 over what comes before it."""
    layout = _layout(form)
    body = layout.pack(**{**values, "kind": KINDS[form], "spare": 0, "crc": 0})[:-4]
    return body + CRC32.compute(body).to_bytes(4, "big")


def decode(form: str, data: bytes) -> dict[str, int]:
    """The fields of a control message, and `good`: whether its CRC is right."""
    found = _layout(form).unpack(data)
    return {**found, "good": int(found["crc"] == CRC32.compute(data[:-4]) and found["kind"] == KINDS[form])}


def _layout(form):
    if form not in KINDS or form == "data":
        raise BadInput(f"a control message must be one of request, credit, reachability, not {form!r}")
    return FORMATS[form]
