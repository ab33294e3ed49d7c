"""Cells and their layout for a reader, and the same as data."""

from typing import Any

from weft.wire.format import Format
from weft.wire.shoal import CELL, CODES, CRC, HEADER, SOURCE, decode, missed_pairs


def cell_data(data: bytes, layout: Format = HEADER) -> dict[str, Any]:
    """What a cell says, or a header alone: its fields, and whether it is intact."""
    cell, intact = decode(data, layout)
    header, payload = data[: layout.size], data[layout.size :]
    return {
        "format": layout.name,
        "hex": data.hex(),
        "fields": layout.unpack(header),
        "empty": cell.empty,
        "intact": intact if payload else None,  # a header alone has no CRC to be right
        "payload": payload.hex(),
    }


def cell_text(said: dict[str, Any]) -> str:
    """`cell_data` for a reader, a field a line."""
    means = {code: word.replace("-", " ") for word, code in CODES.items()}
    lines = []
    for name, value in said["fields"].items():
        note = f"  {means[value]}" if name in ("feedback", "older") and value in means else ""
        if name == "crc":
            verdict = {True: "  right", False: "  wrong: the cell is damaged", None: ""}
            value, note = f"{value:#04x}", verdict[said["intact"]]
        lines.append(f"{name:<9} {value}{note}")
    lines.append(f"{'payload':<9} {'none: an empty cell' if said['empty'] else said['payload'] or 'not given'}")
    return "\n".join(lines)


def layout_data(layout: Format = HEADER) -> dict[str, Any]:
    """The header's fields, their places, where their widths come from, and what the CRC misses."""
    rows = [
        {"field": name, "bits": width, "first": layout.offset(name), "last": layout.offset(name) + width - 1,
         "paper": SOURCE[name][0], "source": SOURCE[name][1]}
        for name, width in layout.fields
    ]  # fmt: skip
    crc = {
        "name": CRC.name, "poly": CRC.poly, "init": CRC.init, "xor_out": CRC.xor_out,
        "double_errors": 8 * CELL * (8 * CELL - 1) // 2, "double_errors_missed": missed_pairs(CELL, layout),
    }  # fmt: skip
    return {"format": layout.name, "bytes": layout.size, "fields": rows, "crc": crc, "feedback_codes": CODES}


def layout_text(said: dict[str, Any]) -> str:
    """`layout_data` for a reader."""
    wide, crc, codes = max(len(row["paper"]) for row in said["fields"]), said["crc"], said["feedback_codes"]
    lines = [f"{'bits':<7} {'field':<9} {'width':>5}  {'in the paper':<{wide}}  the width is"]
    for row in said["fields"]:
        span = f"{row['first']}" if row["bits"] == 1 else f"{row['first']}-{row['last']}"
        lines.append(f"{span:<7} {row['field']:<9} {row['bits']:>5}  {row['paper']:<{wide}}  {row['source']}")
    start = f"polynomial {crc['poly']:#04x}, start {crc['init']:#04x}, inverted at the end"
    return "\n".join(
        [
            *lines,
            "",
            f"{said['bytes']} bytes; bit 0 is the lowest bit of the first byte",
            f"feedback {codes['nothing']} is nothing received, {codes['not-applicable']} not applicable",
            f"crc is {crc['name']}: {start}; it covers",
            f"the other {CELL - 1} bytes of a cell and misses {crc['double_errors_missed']} of "
            f"{crc['double_errors']:,} double errors",
        ]
    )
