"""A laboratory for scheduled datacenter fabrics: describe one in a line, run it at cell level, price it, compare it."""

from importlib import import_module

_WHERE = {
    # quantities
    **dict.fromkeys(("ps", "ns", "us", "ms", "s"), "weft.units"),
    **dict.fromkeys(("bps", "Kbps", "Mbps", "Gbps", "Tbps"), "weft.units"),
    **dict.fromkeys(("B", "KB", "MB", "GB", "TB", "KiB", "MiB", "GiB"), "weft.units"),
    # what enters
    **dict.fromkeys(("Poisson", "Bursts", "Permutation", "Incast", "Outcast", "AllToAll"), "weft.workload"),
    **dict.fromkeys(
        ("Shuffle", "Hotspot", "Shorts", "Trace", "Flows", "AllReduce", "AllGather", "ReduceScatter", "Exchange"),
        "weft.workload",
    ),
    **dict.fromkeys(("Experts", "ParameterServer", "DataParallel", "Pipeline"), "weft.workload"),
    **dict.fromkeys(("Rpc", "MapReduce", "ChainReplication", "Chakra"), "weft.workload"),
    **dict.fromkeys(("Bernoulli", "Uniform", "Diagonal", "LogDiagonal", "HotOutput"), "weft.workload.traffic"),
    **dict.fromkeys(("Unbalanced", "OnOff", "Multicast"), "weft.workload.traffic"),
    # what carries it
    "Shoal": "weft.fabrics.shoal",
    "Crossbar": "weft.fabrics.crossbar",
    "Packet": "weft.fabrics.packet",
    "Merchant": "weft.fabrics.merchant.fabric",
    "Torus": "weft.fabrics.torus",
    "TDMA": "weft.fabrics.tdma",
    "Ideal": "weft.fabrics.ideal",
    "Stardust": "weft.fabrics.stardust",
    # how it is run
    **dict.fromkeys(("run", "Interrupted"), "weft.experiment"),
    "Checkpoint": "weft.checkpoint",
    **dict.fromkeys(("Study", "Runs"), "weft.study"),
    # what is compared
    "fair": "weft.links",
    "compare": "weft.comparison",
    "follow": "weft.following",
    # what it would cost
    "cost": "weft.models.price",
    # what came out
    "Result": "weft.metrics",
    # what can go wrong
    **dict.fromkeys(("WeftError", "BadInput", "TooLarge", "MonitorTripped", "BadResult"), "weft.errors"),
}

__all__ = list(_WHERE)


def __getattr__(name):
    """Import a public name when it is first used: kernels and Parquet are slow to load, and few need them all."""
    if name == "__version__":
        return import_module("weft.metrics.provenance").version()
    if name not in _WHERE:
        raise AttributeError(f"module 'weft' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_WHERE[name]), name)
    return value


def __dir__():
    return sorted({*globals(), *__all__})
