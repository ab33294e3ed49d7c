"""Rates are bits per second, sizes bytes and times whole picoseconds, everywhere, as plain ints."""

import re
from dataclasses import MISSING, field
from decimal import Context, Decimal, InvalidOperation, Overflow
from math import isfinite
from typing import Annotated

from weft.errors import BadQuantity, require

bps, Kbps, Mbps, Gbps, Tbps = 1, 10**3, 10**6, 10**9, 10**12
ps, ns, us, ms, s = 1, 10**3, 10**6, 10**9, 10**12
B, KB, MB, GB, TB = 1, 10**3, 10**6, 10**9, 10**12
KiB, MiB, GiB = 2**10, 2**20, 2**30

MOST = 10**30  # beyond it a number is a slip, and too long to print

_TIMES = {"ps": ps, "ns": ns, "us": us, "µs": us, "ms": ms, "s": s}
_RATES = {"bps": bps, "kbps": Kbps, "mbps": Mbps, "gbps": Gbps, "tbps": Tbps}
_SIZES = {"b": B, "kb": KB, "mb": MB, "gb": GB, "tb": TB, "kib": KiB, "mib": MiB, "gib": GiB}


def wire_time(size: int, rate: int) -> int:
    """Picoseconds that `size` bytes occupy a link of `rate`, rounded up to a whole one."""
    return -(-size * 8 * s // rate)


def time_of(size, rate) -> int:
    """The same, of quantities that may be texts: `time_of("130KB", "100Gbps")`."""
    bytes, bits = parse_size(size), parse_rate(rate)
    require(bytes >= 0, "a size", "at least 0 bytes", size)
    require(bits > 0, "a rate", "above 0", rate)
    return wire_time(bytes, bits)


def _quantity(text, units, what, example):
    if isinstance(text, int) and not isinstance(text, bool):
        return text
    match = re.fullmatch(r"\s*([-+]?[0-9][0-9_,]*\.?[0-9]*(?:[eE][-+]?[0-9]+)?)\s*([A-Za-zµμ/]*)\s*", str(text))
    if not match:
        raise BadQuantity(f"a {what} must look like {example}, not {text!r}")
    if units is _RATES and re.search(r"B(/s|ps)$", match[2]):  # 100 GB/s is eight times 100 Gb/s
        raise BadQuantity(f"a {what} must be in bits, as in {example}, not bytes: {text!r}")
    unit = match[2].lower().replace("b/s", "bps").replace("bit/s", "bps").replace("μ", "µ")  # Greek keyboards
    if unit and unit not in units:
        raise BadQuantity(f"a {what} must be in one of {', '.join(units)}, not {match[2]!r} as in {text!r}")
    try:
        digits = match[1].replace("_", "").replace(",", "")
        exact = Context(prec=len(digits) + 20).multiply(Decimal(digits), units.get(unit, 1))  # not only 28 digits
    except (InvalidOperation, Overflow):
        raise BadQuantity(f"a {what} must look like {example}, not {text!r}") from None
    if abs(exact) >= MOST:
        bound = "above -1e30" if exact < 0 else "below 1e30"
        raise BadQuantity(f"a {what} must be {bound} {next(iter(units))}, not {text!r}")
    if exact != exact.to_integral_value():
        smallest = next(iter(units))
        raise BadQuantity(f"a {what} must be a whole number of {smallest}, not {text!r}")
    return int(exact)


def parse_time(text) -> int:
    """Picoseconds in '2750ps', '2.75 ns' or a bare number of picoseconds."""
    return _quantity(text, _TIMES, "time", "2750ps or 1.5us")


def parse_rate(text) -> int:
    """Bits per second in '100Gbps', '25 Gb/s' or a bare number of b/s."""
    return _quantity(text, _RATES, "rate", "100Gbps")


def parse_size(text) -> int:
    """Bytes in '130KB', '1.5 MB', '4KiB' or a bare number of bytes; KB is 1000."""
    return _quantity(text, _SIZES, "size", "130KB")


def show_time(t: int) -> str:
    """`t` picoseconds in the largest unit that keeps at least one digit before the point."""
    return _show(t, (("s", s), ("ms", ms), ("us", us), ("ns", ns), ("ps", ps)))


def show_rate(rate: int) -> str:
    """`rate` in the largest unit that keeps at least one digit before the point."""
    return _show(rate, (("Tbps", Tbps), ("Gbps", Gbps), ("Mbps", Mbps), ("Kbps", Kbps), ("bps", bps)))


def show_size(size: int) -> str:
    """`size` bytes in the largest unit that keeps at least one digit before the point."""
    return _show(size, (("TB", TB), ("GB", GB), ("MB", MB), ("KB", KB), ("B", B)))


def _show(value, units):
    for name, unit in units:
        if abs(value) >= unit:
            return f"{value / unit:.6g} {name}"
    return f"0 {units[-1][0]}"


NOTHING = "–"


def show_number(value, digits: int = 4) -> str:
    """`value` with at most `digits` significant digits, whole numbers whole, thousands apart, and – for None."""
    if value is None:
        return NOTHING
    if isinstance(value, bool | str | dict):
        return str(value)
    if isinstance(value, int) and abs(value) >= 1 << 1000:  # beyond what floating point holds
        return f"about 2^{abs(value).bit_length()}"
    if isinstance(value, list | tuple):
        return ", ".join(show_number(item, digits) for item in value)
    if not isfinite(value):
        return str(value)
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    if not 1e-4 <= abs(value) < 1e12:
        return f"{value:.{digits - 1}e}"
    before = len(str(int(abs(value)))) if abs(value) >= 1 else 0
    if before:
        return f"{value:,.{max(digits - before, 0)}f}"
    return f"{value:.{digits}g}"


# How a parameter is written and read at the command line: `guard: Time = param(2750, "dark time …")`.
Time = Annotated[int, "time"]
Rate = Annotated[int, "rate"]
Size = Annotated[int, "size"]


def param(default=MISSING, help: str = "", **metadata):
    """A dataclass field with the sentence that `--help` and the reference say of it."""
    return field(default=default, metadata={"help": help, **metadata})
