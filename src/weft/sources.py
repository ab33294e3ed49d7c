"""What code depends on: the files behind a module, found by following its imports, and a hash of them.

A run's name, a result's provenance and a compiled kernel are all good for one version of the code that made them.
Which files that is cannot be kept as a list by hand: the list is wrong the day somebody adds a file, and then old
numbers come back. So it is computed: from a module to all modules it imports, anywhere in its text, as far as they
belong to weft or to the package (of a script: the folder) of whoever asks; with the data files, tables and presets,
that lie beside them. Nothing is imported to find out. Libraries are not followed: their versions are in the provenance.
"""

import ast
import inspect
import json
import os
import sys
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from importlib.machinery import PathFinder
from pathlib import Path
from threading import get_ident

from weft.cache import folder

PROSE = {".md", ".rst", ".txt", ".pyc", ".ipynb", ".typed", ""}  # beside a module, but nothing it computes with
LOOP = "weft.engine.loop"  # every run goes through it


def files(modules: Iterable[str]) -> dict[str, Path]:
    """Every file that `modules`, given by name, may depend on, by its name within its package."""
    found: dict[str, Path] = {}
    asked = list(dict.fromkeys(modules))
    folders = [path.parent for name in asked if "." not in name and (path := _locate(name))]
    roots = {"weft", *(name.partition(".")[0] for name in asked)}
    waiting, seen, beside = list(asked), set(), set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        path = _locate(name, folders)
        if path is None or (name.partition(".")[0] not in roots and path.parent not in folders):
            continue
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        found[f"{package.replace('.', '/')}/{path.name}"] = path
        if package and path.parent not in beside:
            beside.add(path.parent)
            found |= {f"{package.replace('.', '/')}/{tail}": item for tail, item in _data(path.parent)}
        waiting += _imports(name, path, path.stat().st_mtime_ns)
        parent = _locate(package) if package and package != name else None
        if parent is not None:  # it is run on the way to the module, which takes nothing from it unless it says so
            found[f"{package.replace('.', '/')}/{parent.name}"] = parent
    _keep_parsed()
    return dict(sorted(found.items()))


def digest(*modules: str) -> str:
    """16 hexadecimal digits that change when any file does that `modules` may depend on."""
    key = tuple(sorted(set(modules)))
    before = _known.get(key)
    if before is None or before[1] != _stamps(before[0]):  # an edited file may import others now
        listed = files(key)
        _known[key] = before = (listed, _stamps(listed), _hash(listed))
    return before[2]


def digest_of(*things) -> str:
    """The same for the code behind some descriptions, be it weft's, another package's or a script's own."""
    classes = list(dict.fromkeys(cls for thing in things for cls in _classes(thing)))
    found = digest(LOOP, *(cls.__module__ for cls in classes))
    typed = [_text(cls) for cls in classes if _locate(cls.__module__) is None]  # at a prompt: in no file
    return sha256("\n".join([found, *typed]).encode()).hexdigest()[:16] if typed else found


_known: dict[tuple, tuple] = {}  # modules -> (their files, when those were written, the digest)


def _stamps(listed):
    return [_stamp(path) for path in listed.values()]


def _stamp(path):
    try:
        seen = os.stat(path)
    except OSError:
        return None
    return seen.st_mtime_ns, seen.st_size


def _hash(listed):
    found = sha256()
    for name, path in listed.items():
        content = path.read_bytes()
        found.update(f"{name}\n{len(content)}\n".encode())
        found.update(content)
    return found.hexdigest()[:16]


def _classes(thing) -> list[type]:
    """The class of a description, its bases, and those of every description in its fields."""
    cls = thing if isinstance(thing, type) else type(thing)
    found = [base for base in cls.__mro__ if base.__module__ not in ("builtins", "typing", "abc", "enum")]
    for value in () if isinstance(thing, type) else getattr(thing, "__dict__", {}).values():
        for item in value if isinstance(value, tuple | list) else (value,):
            if hasattr(type(item), "__dataclass_fields__"):
                found += _classes(item)
    return found


def _text(cls) -> str:
    """What is known of a class that was typed at a prompt."""
    try:
        return inspect.getsource(cls)
    except (OSError, TypeError):
        codes = [f.__code__ for f in vars(cls).values() if hasattr(f, "__code__")]
        return repr([(code.co_code, code.co_names, [c for c in code.co_consts if isinstance(c, int | float | str)])
                     for code in codes])  # fmt: skip


def _locate(name: str, folders=()) -> Path | None:
    """The source file of a module; None for what is built in, compiled or not there."""
    place = getattr(sys.modules.get(name), "__file__", None)
    if place is None and name != "__main__":
        top, *rest = name.split(".")
        home = getattr(sys.modules.get(top), "__file__", None)
        if home is None:
            spec = PathFinder.find_spec(top, [*map(str, folders), *sys.path])
            home = spec.origin if spec else None
        if home is None:
            return None
        base = Path(home).parent.joinpath(*rest)
        beside = base.with_name(f"{base.name}.py") if rest else Path(home)
        place = beside if beside.is_file() else base / "__init__.py"
    if place is None or not str(place).endswith(".py") or not os.path.isfile(place):
        return None
    return Path(place)


def _data(folder: Path):
    """(name within the package, path) of the data files in a package's folder, and in folders there that are none."""
    for item in sorted(folder.iterdir()):
        if item.is_dir():
            if item.name != "__pycache__" and not (item / "__init__.py").exists():
                inside = [path for path in sorted(item.rglob("*")) if path.is_file()]
                yield from ((p.relative_to(folder).as_posix(), p) for p in inside if p.suffix not in (*PROSE, ".py"))
        elif item.suffix not in (*PROSE, ".py"):
            yield item.name, item


@cache
def _imports(name: str, path: Path, stamp: int) -> tuple[str, ...]:
    """The modules that a file imports, at its top or inside its functions; `stamp` is when it was written."""
    package, text = name if path.name == "__init__.py" else name.rpartition(".")[0], path.read_bytes()
    key = sha256(b"\0".join([_own_text(), package.encode(), text])).hexdigest()
    parsed = _parsed()
    if key not in parsed:
        parsed[key] = _named(text, package)
        _new.add(key)
    return tuple(parsed[key])


def _named(text: bytes, package: str) -> list[str]:
    """The modules that the text of a module of this package imports."""
    found: list[str] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            up = package.split(".")[: 1 - node.level or None] if node.level else []
            base = ".".join([*up, *([node.module] if node.module else [])])
            found += [base, *(f"{base}.{alias.name}" for alias in node.names)]  # what is no module is not found later
    return list(dict.fromkeys(found))


# To parse all files behind a fabric takes a third of a second: what each imports is kept on disk, by its hash.
MOST_TEXTS = 2000  # of which it is kept; the oldest go
_new: set[str] = set()  # hashes of texts of which it is not on disk yet


@cache
def _own_text() -> bytes:
    """This module, which decides what counts as an import."""
    return Path(__file__).read_bytes()


@cache
def _parsed() -> dict[str, list[str]]:
    """What texts import, by their hashes, as far as it was on disk."""
    try:
        known = json.loads((folder("imports") / "known.json").read_text())
    except (OSError, ValueError):  # nobody has written it; or it is damaged
        return {}
    return known if isinstance(known, dict) else {}


def _keep_parsed() -> None:
    """Write what was found out; of two who do so at a time one is forgotten."""
    if not _new:
        return
    _new.clear()
    known = dict(list(_parsed().items())[-MOST_TEXTS:])
    place = folder("imports")
    fresh = place / f"{os.getpid()}.{get_ident()}"
    try:
        fresh.write_text(json.dumps(known))
        os.replace(fresh, place / "known.json")
    except OSError:  # a disk that is full
        fresh.unlink(missing_ok=True)
