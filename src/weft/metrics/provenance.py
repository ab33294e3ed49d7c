"""Provenance says where a result came from, so completely that the call can be made again."""

import os
import platform
import sys
from dataclasses import fields, is_dataclass
from enum import Enum
from hashlib import sha256
from importlib import metadata
from math import isfinite

import numpy as np

from weft.errors import BadInput
from weft.parameters import parameters


def plain(value):
    """`value` as JSON can hold it: NumPy becomes Python, tuples lists, dataclasses dicts, and NaN and infinity None."""
    if is_dataclass(value) and not isinstance(value, type):
        return describe(value)
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset | range):
        return [plain(item) for item in (sorted(value) if isinstance(value, set | frozenset) else value)]
    if value is None or isinstance(value, bool | int | str):
        return value
    return str(value)


def describe(thing) -> dict:
    """A frozen description (a fabric, a workload, a size distribution) as data: its class and its fields.

    A class that is not weft's is named in full as well, `module:Class`, so that it can be found again.
    """
    if isinstance(thing, dict):
        return plain(thing)
    cls = type(thing)
    data = {"kind": cls.__name__}
    if cls.__module__.partition(".")[0] != "weft":
        data["class"] = f"{cls.__module__}:{cls.__qualname__}"
    if not is_dataclass(thing):
        return data
    data.update((f.name, plain(getattr(thing, f.name))) for f in fields(thing) if f.init)
    return data


def rebuild(data: dict, cls: type, *others: type):
    """The description of class `cls` that `describe` wrote down; those in its fields are of `others`."""
    known = {other.__name__: other for other in others}

    def made(value):
        if isinstance(value, list):  # JSON has no tuples, and descriptions have no lists
            return tuple(made(item) for item in value)
        if isinstance(value, dict) and "kind" in value:
            if not isinstance(value["kind"], str) or value["kind"] not in known:
                raise BadInput(f"kind must be one of {', '.join(sorted(known))}, not {value['kind']!r}")
            return rebuild(value, known[value["kind"]], *others)
        return value

    arguments = {key: made(value) for key, value in data.items() if key not in ("kind", "class")}
    if unknown := sorted(set(arguments) - {f.name for f in fields(cls) if f.init}):
        raise BadInput(f"{cls.__name__} must be made of fields it has, not {unknown[0]!r}")
    for one in parameters(cls):
        if one.name in arguments:
            _check(one, arguments[one.name], cls)
    try:
        return cls(**arguments)
    except TypeError:
        raise BadInput(f"{cls.__name__} must be made of all its fields, not of {_some(arguments)}") from None


_KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "float": ((int, float), "a number"),
    "bool": ((bool,), "true or false"),
    "str": ((str,), "a text"),
    "hex": ((str, bytes), "a text"),
}
_WHOLE = ((int,), "a whole number")  # times, rates and sizes too


def _check(one, value, cls) -> None:
    """Raise a sentence unless a field's value is of the kind that was written down."""
    types, said = _KINDS.get(one.kind, _WHOLE)
    if value is None or is_dataclass(value):
        good = value is not None or one.optional
    elif isinstance(value, tuple) and isinstance(one.default, tuple) and not one.many:
        good = True  # of what, only its class knows
    elif one.many:
        good = isinstance(value, tuple) and all(isinstance(item, types) for item in value)
    else:
        good = isinstance(value, types) and isinstance(value, bool) == (one.kind == "bool")
        good = good and not (isinstance(value, int) and abs(value) >= 2**63)
        if good and one.choices and value not in one.choices:
            good, said = False, f"one of {', '.join(map(str, one.choices))}"
    if not good:
        raise BadInput(f"{one.name} of {cls.__name__} must be {said}, not {value!r:.40}")


def _some(arguments) -> str:
    return ", ".join(arguments) or "none"


def columns_hash(*columns) -> str:
    """16 hexadecimal digits of some columns, the same on machines of either byte order."""
    digest = sha256()
    for column in columns:
        digest.update(np.ascontiguousarray(column, dtype="<i8").tobytes())
    return digest.hexdigest()[:16]


def versions() -> dict:
    """Versions of weft, Python and what computes in it."""
    found: dict[str, str | None] = {"weft": version(), "python": platform.python_version()}
    for package in ("numpy", "numba"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = None
    return found


def version() -> str:
    """Version of weft."""
    try:
        return metadata.version("weft")
    except metadata.PackageNotFoundError:
        return "unknown"


def machine() -> dict:
    """What kind of machine this is. It has no name here: results are meant to be published."""
    return {
        "system": f"{platform.system()} {platform.release()}",
        "architecture": platform.machine(),
        "byte_order": sys.byteorder,
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_bytes": _memory(),
    }


def peak_memory() -> int | None:
    """Largest resident size of this process so far in bytes, where the system tells."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or None


def _memory():
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None
