import enum
import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from weft import workload
from weft.errors import BadInput
from weft.metrics.provenance import columns_hash, describe, machine, peak_memory, plain, rebuild, versions


class Colour(enum.Enum):
    RED = "red"


@dataclass(frozen=True, kw_only=True)
class Pareto:
    shape: float = 1.05


@dataclass(frozen=True, kw_only=True)
class Poisson:
    load: float
    sizes: Pareto | str = "pareto"
    pairs: tuple = ()
    count: int | None = None
    derived: int = field(default=3, init=False)


@pytest.mark.parametrize(
    "thing",
    [Poisson(load=0.1), Poisson(load=0.3, sizes=Pareto(shape=1.2), pairs=((0, 1), (2, 3))), Poisson(load=1.0, count=5)],
)
def test_a_description_survives_json(thing):
    data = json.loads(json.dumps(describe(thing), allow_nan=False))
    assert rebuild(data, Poisson, Pareto) == thing


def test_a_description_names_its_class_and_fields():
    data = {"kind": "Poisson", "load": 0.5, "sizes": "pareto", "pairs": [], "count": None}
    assert describe(Poisson(load=0.5)) == {**data, "class": f"{__name__}:Poisson"}
    assert describe(workload.Incast(fan_in=2, bytes=9))["kind"] == "Incast"
    assert "class" not in describe(workload.Incast(fan_in=2, bytes=9))


def test_what_cannot_be_rebuilt_gets_a_sentence():
    with pytest.raises(BadInput, match=r"^kind must be one of Pareto, Poisson, not 'Bursts'$"):
        rebuild({"load": 1.0, "sizes": {"kind": "Bursts"}}, Poisson, Poisson, Pareto)
    with pytest.raises(BadInput, match=r"^Pareto must be made of fields it has, not 'scale'$"):
        rebuild({"kind": "Pareto", "scale": 2}, Pareto)


def test_plain_data_is_what_json_can_hold():
    data = {1: np.float64("nan"), "a": np.arange(2), "b": (np.int8(3), float("inf")), "c": Colour.RED, "d": Path("x"),
            "e": {3, 1}, "f": np.array([[1.0, np.nan]]), "g": np.bool_(True)}  # fmt: skip
    assert plain(data) == {
        "1": None, "a": [0, 1], "b": [3, None], "c": "red", "d": "x", "e": [1, 3], "f": [[1.0, None]], "g": True
    }  # fmt: skip


def test_a_column_hash_is_of_values_not_of_types():
    assert columns_hash(np.array([1, 2], np.int32)) == columns_hash(np.array([1, 2], ">i8"))
    assert columns_hash(np.array([1, 2])) != columns_hash(np.array([2, 1]))


def test_versions_and_machine_are_plain_data():
    assert set(versions()) == {"weft", "python", "numpy", "numba"}
    assert plain(machine()) == machine() and machine()["cores"] >= 1
    assert peak_memory() > 10**6
