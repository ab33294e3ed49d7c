import enum
import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from weft.errors import BadInput
from weft.metrics import provenance
from weft.metrics.provenance import columns_hash, describe, machine, peak_memory, plain, rebuild, source_hash, versions


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
    assert rebuild(data, [Poisson, Pareto]) == thing


def test_a_description_names_its_class_and_fields():
    data = {"kind": "Poisson", "load": 0.5, "sizes": "pareto", "pairs": [], "count": None}
    assert describe(Poisson(load=0.5)) == data


def test_what_cannot_be_rebuilt_gets_a_sentence():
    with pytest.raises(BadInput, match=r"^kind must be one of Pareto, Poisson, not 'Bursts'$"):
        rebuild({"kind": "Bursts"}, [Poisson, Pareto])
    with pytest.raises(BadInput, match=r"^Pareto must be made of fields it has, not 'scale'$"):
        rebuild({"kind": "Pareto", "scale": 2}, [Pareto])


def test_plain_data_is_what_json_can_hold():
    data = {1: np.float64("nan"), "a": np.arange(2), "b": (np.int8(3), float("inf")), "c": Colour.RED, "d": Path("x"),
            "e": {3, 1}, "f": np.array([[1.0, np.nan]]), "g": np.bool_(True)}  # fmt: skip
    assert plain(data) == {
        "1": None, "a": [0, 1], "b": [3, None], "c": "red", "d": "x", "e": [1, 3], "f": [[1.0, None]], "g": True
    }  # fmt: skip


def test_the_source_hash_changes_with_any_file_that_decides(tmp_path, monkeypatch):
    for name in ("random.py", "engine/jit.py", "fabrics/base.py", "fabrics/shoal/kernel.py", "fabrics/tdma/kernel.py",
                 "workload/data/web.csv", "cli/run.py"):  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    monkeypatch.setattr(provenance, "_WEFT", tmp_path)
    shoal = type("Shoal", (), {"__module__": "weft.fabrics.shoal.fabric"})()

    def moves(name, fabric=None):
        before = source_hash(fabric)
        (tmp_path / name).write_text((tmp_path / name).read_text() + "2")
        return source_hash(fabric) != before

    assert moves("random.py") and moves("fabrics/tdma/kernel.py") and moves("workload/data/web.csv")
    assert not moves("cli/run.py")
    assert moves("fabrics/shoal/kernel.py", shoal) and moves("fabrics/base.py", shoal) and moves("engine/jit.py", shoal)
    assert not moves("fabrics/tdma/kernel.py", shoal)


def test_a_column_hash_is_of_values_not_of_types():
    assert columns_hash(np.array([1, 2], np.int32)) == columns_hash(np.array([1, 2], ">i8"))
    assert columns_hash(np.array([1, 2])) != columns_hash(np.array([2, 1]))


def test_versions_and_machine_are_plain_data():
    assert set(versions()) == {"weft", "python", "numpy", "numba"}
    assert plain(machine()) == machine() and machine()["cores"] >= 1
    assert peak_memory() > 10**6
