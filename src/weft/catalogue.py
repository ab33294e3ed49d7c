"""What there is to run: fabrics and workloads by the names that the command line and study files use."""

from weft.errors import BadInput
from weft.fabrics import FABRICS, fabric


def available() -> list[str]:
    """Names of the fabrics whose room is there."""
    found = []
    for name in FABRICS:
        try:
            fabric(name)
        except (ImportError, AttributeError):
            continue
        found.append(name)
    return found


def fabric_class(name: str):
    """The class of the fabric called `name`."""
    if name not in FABRICS:
        raise BadInput(f"a fabric must be one of {', '.join(FABRICS)}, not {name!r}")
    return fabric(name)


def every_workload() -> dict:
    """Name -> class of every workload, flows first, then traffic that only a switch takes: cells."""
    from weft.workload import WORKLOADS
    from weft.workload.traffic import TRAFFIC

    return {**WORKLOADS, **TRAFFIC}


def workloads(fabric: str) -> dict:
    """Name -> class of every workload that the fabric called `fabric` can carry."""
    from weft.workload import WORKLOADS

    return every_workload() if fabric == "crossbar" else dict(WORKLOADS)


def workload_class(name: str, fabric: str):
    """The class of the workload called `name` on the fabric called `fabric`."""
    known = workloads(fabric)
    if name not in known:
        raise BadInput(f"a workload of {fabric} must be one of {', '.join(known)}, not {name!r}")
    return known[name]


def rebuild_call(data: dict) -> tuple:
    """(fabric, workload) from what a result or a checkpoint keeps of them."""
    from weft.metrics.provenance import rebuild

    names = {place.partition(":")[2]: name for name, place in FABRICS.items()}
    for what in ("fabric", "workload"):
        given = data.get(what)
        if not isinstance(given, dict) or "kind" not in given:
            raise BadInput(f"a {what} must be a table with its kind, not {given!r}")
    kind = data["fabric"]["kind"]
    if kind not in names:
        raise BadInput(f"a fabric must be one of {', '.join(names)}, not {kind!r}")
    fabric = rebuild(data["fabric"], [fabric_class(names[kind])])
    return fabric, rebuild(data["workload"], every_workload().values())
