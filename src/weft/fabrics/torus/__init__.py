"""Direct-connect tori: every node is host and switch, under R2C2 or a transport that knows nothing of the load."""

from weft.fabrics.torus.fabric import Torus

__all__ = ["Torus"]
