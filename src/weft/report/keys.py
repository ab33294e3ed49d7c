"""Keys of a table of runs: finding the one that is meant, and saying it in words with its unit."""

from difflib import get_close_matches

from weft.errors import BadInput, require

UNITS = {
    "ms": "ms", "us": "µs", "ns": "ns", "ps": "ps", "s": "s", "gbps": "Gb/s", "tbps": "Tb/s", "kb": "KB", "mb": "MB",
    "cells": "cells", "bytes": "bytes",
}  # fmt: skip
_BARE = {"ms": "time", "us": "time", "gbps": "rate", "tbps": "rate", "kb": "size", "mb": "size"}  # a key that is a unit
_WORDS = {"fct": "flow completion time", "max_node": "max per node", "rss": "memory", "kind": "", **_BARE}
_SHORT = {
    "load": ("workload.load",),
    "fabric": ("fabric.name", "fabric.kind"),
    "workload": ("workload.name", "workload.kind"),
    "nodes": ("fabric.nodes", "fabric.hosts", "fabric.ports"),
}  # fmt: skip
_STATISTICS = {"mean", "min", "max", "p50", "p90", "p95", "p99", "p99.9"}


def find(rows: list[dict], key: str) -> str:
    """The full key that `key` means: itself, a common short form (`load`, `fct.p99`), or the only key that ends so."""
    known = list(dict.fromkeys(k for row in rows for k in row))
    if key in known:
        return key
    for guess in (*_SHORT.get(key, ()), *_guesses(key)):
        if guess in known:
            return guess
    endings = [k for k in known if k.endswith("." + key)]
    asked = [k for k in endings if k.startswith(("workload.", "fabric."))]
    if len(endings) == 1 or len(asked) == 1:  # what was asked for comes before what was measured
        return (asked or endings)[0]
    if endings:
        raise BadInput(f"{key!r} must name one column, not any of {', '.join(endings)}")
    near = get_close_matches(key, known, n=3, cutoff=0.4) or known[:3]
    raise BadInput(f"a column must be one that the runs have, such as {', '.join(near)}, not {key!r}")


def axes(rows, *, x, y, by=None) -> tuple[str, str, list[str]]:
    """The columns that x, y and by mean; a sentence if they cannot be drawn."""
    for name, key in (("x", x), ("y", y)):
        require(isinstance(key, str), name, "the name of a column", key)
    by = [by] if isinstance(by, str) else list(by or ())
    x, y, found = find(rows, x), find(rows, y), [find(rows, one) for one in by]
    for row in rows:
        if not isinstance(row.get(y), int | float | None):
            raise BadInput(f"y must be a column of numbers, not {y}, which holds {row[y]!r}")
        for key in (x, *found):
            if isinstance(row.get(key), list):
                raise BadInput(f"x and by must be columns of numbers or names, not {key}, which holds a list")
    return x, y, found


def _guesses(key):
    """`fct.p99` -> `fct_us.all.p99`, `fct.short.mean` -> `fct_us.short.mean`, `goodput` -> `goodput_gbps.long.mean`."""
    head, _, rest = key.partition(".")
    unit = {"fct": "fct_us", "goodput": "goodput_gbps"}.get(head)
    if unit is None:
        if head == "slowdown":
            yield f"slowdown.all.{rest}"
        return
    yield f"{unit}.{rest}"
    yield f"{unit}.all.{rest}"
    yield f"{unit}.long.{rest or 'mean'}"


def unit(key: str) -> str:
    """The unit that a key's name ends in, or nothing."""
    for part in reversed(_parts(key)):
        name, _, last = part.rpartition("_")
        if name.endswith("_per") or part in ("seed", "finished", "unfinished"):
            return ""
        if (name and last in UNITS) or part in _BARE:
            return UNITS[last]
    return ""


def words(key: str, short: bool = False) -> str:
    """`fct_us.short.p99.9` -> `short flow completion time, p99.9`; if `short`, `FCT short p99.9`."""
    parts = [_strip(part) for part in _parts(key)]
    if parts[0] in ("workload", "fabric", "offered", "throughput") and len(parts) > 1:
        parts = parts[1:] if parts[1] not in ("kind", "name") else parts[:1]
    if short:
        return " ".join("FCT" if p == "fct" else _BARE.get(p, p.replace("_", " ")) for p in parts)
    named = [_WORDS.get(p, p.replace("_", " ")) for p in parts]
    statistic = named.pop() if named[-1] in _STATISTICS and len(named) > 1 else ""
    if len(named) == 2 and named[1] in ("all", "short", "long"):
        named = [named[0]] if named[1] == "all" else [f"{named[0]} of {named[1]} flows"]
    return " ".join(filter(None, named)) + (f", {statistic}" if statistic else "")


def label(key: str, short: bool = False) -> str:
    """`key` in words, with its unit in brackets."""
    of = unit(key)
    return words(key, short) + (f" ({of})" if of else "")


def _parts(key):
    """The parts between the dots; p99.9 is one."""
    return key.replace("p99.9", "p99:9").replace(".", "\0").replace(":", ".").split("\0")


def _strip(part):
    """`part` without its unit."""
    name, _, last = part.rpartition("_")
    return name if name and last in UNITS and not name.endswith("_per") else part
