"""The schema of a summary: the sections that every room has, with one meaning and one type each.

A room adds sections of its own under other names (`own` says which of a summary they are) and prints them itself.
"""

LARGEST = 1e300  # no number that is measured is beyond it, and a sum of two still is one
NUMBER, WHOLE, TEXT = (int, float, type(None)), (int, type(None)), (str,)
_STATISTICS = dict.fromkeys(("mean", "sd", "p50", "p90", "p95", "p99", "p99.9", "max"), NUMBER)
_SPREAD = dict.fromkeys(("mean", "min", "max"), NUMBER)
_COUNTS: dict = {str: WHOLE}  # any names

COMMON: dict = {
    "fabric": {"kind": TEXT},
    "workload": {"kind": TEXT},
    "seed": (int,),
    "fingerprint": TEXT,
    "partial": (bool,),
    "finished": (int,),
    "unfinished": (int,),
    "simulated_ns": (int, float),
    "flows": {"all": (int,), "short": (int,), "long": (int,)},
    "offered": dict.fromkeys(("nominal_load", "realised_load", "load_rate_gbps", "rate_gbps", "bytes"), NUMBER),
    "fct_us": {"first": NUMBER, "last": NUMBER, "all": _STATISTICS, "short": _STATISTICS, "long": _STATISTICS},
    "slowdown": [dict.fromkeys(("all", "short", "long"), _STATISTICS)],  # null where the fabric knows no bound
    "goodput_gbps": {"long": {"mean": NUMBER}, "long_with_unfinished": {"mean": NUMBER}},
    "throughput": {
        "per_destination_gbps": _SPREAD,
        "fraction_of_link": NUMBER,
        "destinations": WHOLE,
        "window": TEXT,
        "from_ns": NUMBER,
        "to_ns": NUMBER,
    },
    "queue": {"unit": TEXT, "max": WHOLE, "max_bytes": WHOLE, "max_node": WHOLE},
    "lost": {"unit": TEXT, "total": WHOLE, "flows": WHOLE, "causes": _COUNTS},
    "monitors": _COUNTS,
    "rate": {str: NUMBER},
    "wall_s": NUMBER,
    "cpu_s": NUMBER,
    "peak_rss_mb": NUMBER,
    "notes": (list,),
}
OBSERVED: dict = {"now_ps": (int,), "sections": (dict,), "work": {str: (int, float)}, "notes": (list,)}
PROVENANCE: dict = {
    "fabric": {"kind": TEXT},
    "workload": {"kind": TEXT},
    "seed": (int,),
    "nodes": (int,),
    "wall_s": NUMBER,
    "cpu_s": NUMBER,
    "peak_rss_bytes": NUMBER,
    "sources": TEXT,
}
MAYBE: dict = {"until": WHOLE, "inputs": {str: TEXT}}  # of a provenance, where a run was made by `weft.run`
CARRIED = ("cells", "packets")  # one of them: how many of which kind


def own(summary: dict) -> dict:
    """The sections of a summary that are its room's own."""
    return {name: value for name, value in summary.items() if name not in COMMON and name not in CARRIED}


def problems(summary: dict) -> list[str]:
    """What is wrong with a summary, a sentence each; of a good one, nothing."""
    found = list(differences("", summary, COMMON))
    if not any(isinstance(summary.get(name), dict) for name in CARRIED):
        found.append(f"one of {', '.join(CARRIED)} must be a table of counts, not absent")
    return found


def differences(place: str, value, wanted):
    """What is wrong with `value`, called `place`, a sentence each.

    A tuple is of types that it may have; a dict is of its members, or of one kind for all names; a list is of what it
    is if not null.
    """
    if isinstance(wanted, list):
        if value is not None:
            yield from differences(place, value, wanted[0])
        return
    if isinstance(wanted, tuple):
        if not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted):
            kinds = " or ".join("null" if kind is type(None) else kind.__name__ for kind in wanted)
            yield f"{place} must be {kinds}, not {value!r:.40}"
        elif isinstance(value, int | float) and not abs(value) < LARGEST:
            yield f"{place} must be a finite number, not {value!r:.40}"
        return
    if not isinstance(value, dict):
        yield f"{place} must be a table, not {value!r:.40}"
        return
    for name, kind in wanted.items():
        if name is str:
            for key, item in value.items():
                yield from differences(f"{place}.{key}", item, kind)
        elif name not in value:
            yield f"{place}.{name}".lstrip(".") + " must be there"
        else:
            yield from differences(f"{place}.{name}".lstrip("."), value[name], kind)
