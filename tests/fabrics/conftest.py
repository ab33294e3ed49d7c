"""What tests of several rooms share."""

import pytest

from weft import gpu
from weft.engine.replicas import Loop


@pytest.fixture
def machine(monkeypatch):
    """A machine that stands in for a GPU: a loop over nodes or ports, in an order that is drawn."""
    made = Loop(3)
    monkeypatch.setattr(gpu, "find", lambda: made)
    return made
