"""One room per system. `FABRICS` names them; a room is imported when it is asked for: kernels are slow to load."""

from importlib import import_module

FABRICS = {
    "shoal": "weft.fabrics.shoal:Shoal",
    "crossbar": "weft.fabrics.crossbar:Crossbar",
    "packet": "weft.fabrics.packet:Packet",
}


def fabric(name: str):
    """The class of a fabric by its name."""
    module, _, cls = FABRICS[name].partition(":")
    return getattr(import_module(module), cls)
