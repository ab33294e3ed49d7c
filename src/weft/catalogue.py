"""What there is to run: fabrics and workloads by the names that the command line and study files use.

Weft's own are in `weft.fabrics.FABRICS` and `weft.workload`. Another package adds its own by entry points of
the groups `weft.fabrics` and `weft.workloads`; a class that is in no list at all is named `module:Class`. A result
keeps the short name of its classes and, for those that are not weft's, where they are: so `rerun` finds them again.
"""

import os
import sys
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from weft.errors import BadInput, Unusable
from weft.fabrics import FABRICS

if TYPE_CHECKING:
    from weft.fabrics.base import Fabric
    from weft.workload.base import Workload


def fabrics() -> list[str]:
    """Names of all fabrics: weft's, then those of other packages that are installed."""
    return list(_places("fabrics"))


def fabric_class(name: str) -> "type[Fabric]":
    """The class of the fabric called `name`, which may be `module:Class`."""
    return _load("fabric", name, _places("fabrics"))


def every_workload() -> "dict[str, type[Workload]]":
    """Name -> class of every workload."""
    others = _others("workloads")
    return {**own_workloads(), **{name: _load("workload", name, others) for name in others}}


def workloads(fabric: "type[Fabric]") -> "dict[str, type[Workload]]":
    """Name -> class of every workload that the fabric can carry."""
    known = every_workload().items()
    fit = {name: cls for name, cls in known if issubclass(cls.draws, fabric.carries)}
    return {name: cls for name, cls in fit.items() if fabric.releases or not cls.waits}


def workload_class(name: str, fabric: "type[Fabric]") -> "type[Workload]":
    """The class of the workload called `name`, which may be `module:Class`, for a fabric that can carry it."""
    if ":" in name:
        found = _load("workload", name, {})
        if not issubclass(found.draws, fabric.carries):
            kinds = " or ".join(kind.kind for kind in fabric.carries)
            raise BadInput(f"a workload of {fabric.__name__} must draw {kinds}, not {found.draws.kind} as {name} does")
        return found
    known = workloads(fabric)
    if name not in known:
        names = ", ".join(known)
        raise BadInput(f"a workload of {fabric.__name__} must be module:Class or one of {names}, not {name!r}")
    return known[name]


def class_of(description: dict, what: str) -> type:
    """The class that a description which was saved is of; `what` is fabric or workload."""
    kind, place = description.get("kind"), description.get("class")
    if place is not None:
        return _load(what, str(place), {})
    known = _own(what)
    if kind not in known:
        raise BadInput(f"a {what} must be one of {', '.join(known)}, not {kind!r}")
    found = known[kind]
    return _load(what, found, FABRICS) if isinstance(found, str) else found


def rebuild_call(data: dict) -> tuple:
    """(fabric, workload) from what a result or a checkpoint keeps of them."""
    from weft.metrics.provenance import rebuild

    made = []
    for what in ("fabric", "workload"):
        given = data.get(what)
        if not isinstance(given, dict) or not isinstance(given.get("kind"), str):
            raise BadInput(f"a {what} must be a table with its kind, not {given!r}")
        made.append(rebuild(given, class_of(given, what)))
    return tuple(made)


@cache
def _own(what) -> Mapping[Any, type | str]:
    """Class by its name, of those that come with weft; of a fabric, what it is called, as each is slow to import."""
    if what == "fabric":
        return {place.partition(":")[2]: name for name, place in FABRICS.items()}
    return {cls.__name__: cls for cls in own_workloads().values()}


def own_workloads() -> "dict[str, type[Workload]]":
    """Name -> class of the workloads that come with weft: flows first, then cells that are made slot by slot."""
    from weft.workload import WORKLOADS
    from weft.workload.traffic import TRAFFIC

    return {**WORKLOADS, **TRAFFIC}


def _places(group) -> dict[str, str]:
    return {**(FABRICS if group == "fabrics" else {}), **_others(group)}


@cache
def _others(group) -> dict[str, str]:
    """Name -> `module:Class` of what other packages add; they cannot take a name of weft's."""
    taken = FABRICS if group == "fabrics" else own_workloads()
    return {entry.name: entry.value for entry in entry_points(group=f"weft.{group}") if entry.name not in taken}


def _load(what, name, places) -> Any:
    """Import the class called `name`; what is wrong with it is said in a sentence."""
    if ":" not in name and name not in places:
        raise BadInput(f"a {what} must be module:Class or one of {', '.join(places)}, not {name!r}")
    place = places.get(name, name)
    module, _, attribute = place.partition(":")
    here = os.getcwd()
    if ":" in name and here not in sys.path:
        sys.path.append(here)  # as `python -m` would; last, so that it hides nothing
    try:
        found = import_module(module)
    except ImportError as error:
        raise Unusable(f"the {what} {name} cannot be loaded: {error}") from error
    except SyntaxError as error:
        raise Unusable(f"the {what} {name} cannot be loaded: {error.msg} in {error.filename}:{error.lineno}") from error
    cls = getattr(found, attribute, None)
    base = _base(what)
    if not (isinstance(cls, type) and issubclass(cls, base)):
        was = f"a {type(cls).__name__}" if cls is not None else "missing"
        raise Unusable(f"{place} must be a class that derives from {base.__module__}.{base.__name__}, not {was}")
    return cls


def _base(what) -> type:
    if what == "fabric":
        from weft.fabrics.base import Fabric

        return Fabric
    from weft.workload.base import Workload

    return Workload
