"""A fabric and a workload of somebody else's: through the command line, a study, a rerun and a resume, and no file of
weft touched."""

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import weft_fluid

import weft
from weft import catalogue
from weft.engine import loop
from weft.errors import BadInput, Unusable
from weft.metrics import schema

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/extending.md").read_text()
POISSON = ["poisson", "--nodes", "8", "--load", "0.5", "--flows", "60", "--sizes", "fixed:20KB"]


def typed(*tokens, cwd=None, path=""):
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{path}:{ROOT / 'src'}"}
    return subprocess.run(
        [sys.executable, "-m", "weft", *tokens], capture_output=True, text=True, cwd=cwd, env=env, timeout=120
    )


def test_an_installed_fabric_is_listed_with_weft_s_own():
    assert "fluid" in catalogue.fabrics() and catalogue.fabric_class("fluid") is weft_fluid.Fluid
    assert "ring" in catalogue.workloads(weft_fluid.Fluid)
    assert "An ideal switch" in typed("fabrics").stdout


def test_a_flow_of_any_size_has_the_ideal_time_of_its_bytes_on_the_link():
    sizes = [1, 1000, 2_000_000, 10**9, 2**46]  # at 100 Gb/s a byte takes 80 ps
    flows = weft.Flows.of(nodes=2, src=[0] * 5, dst=[1] * 5, size=sizes, start=0)
    assert weft_fluid.Fluid(nodes=2).ideal(flows).tolist() == [80 * size for size in sizes]


@pytest.mark.parametrize("name", ["fluid", "weft_fluid:Fluid"])
@pytest.mark.parametrize("workload", [["ring", "--nodes", "8", "--bytes", "1MB"], POISSON,
                                      ["weft_fluid:Ring", "--nodes", "8", "--bytes", "1MB"]])  # fmt: skip
def test_it_runs_by_its_name_or_its_place_and_is_made_again(name, workload, tmp_path):
    ran = typed("run", name, *workload, "-o", str(tmp_path / "r"))
    assert ran.returncode == 0 and "Fluid, 8 nodes" in ran.stdout and "rates " in ran.stdout, ran.stderr
    again = typed("rerun", str(tmp_path / "r"))
    assert again.returncode == 0 and "the same again" in again.stdout
    assert json.loads((tmp_path / "r/provenance.json").read_text())["fabric"]["class"] == "weft_fluid.fabric:Fluid"


def test_nobody_is_faster_than_the_ideal_switch_on_the_mean():
    flows = weft.Poisson(load=0.6, sizes="uniform:1KB,60KB", flows=200)
    fluid = weft.run(weft_fluid.Fluid(nodes=8), flows, seed=1)
    rack = weft.run(weft.Shoal(nodes=8), flows, seed=1)
    assert schema.problems(fluid.summary()) == []
    assert fluid.fct().mean < rack.fct().mean
    assert fluid.slowdown().min >= 1


def test_a_study_compares_it_with_weft_s_own(tmp_path):
    (tmp_path / "s.toml").write_text(
        '[[fabric]]\nkind = "fluid"\nnodes = 8\n[[fabric]]\nkind = "weft_fluid:Fluid"\nnodes = 8\nlink = "50Gbps"\n'
        '[[fabric]]\nkind = "shoal"\nnodes = 8\n[workload]\nkind = "ring"\nbytes = "20KB"\n'
    )
    ran = typed("sweep", "s.toml", "-o", "out", "--workers", "2", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert len(list((tmp_path / "out/runs").glob("fluid-*"))) == 2
    again = typed("sweep", "s.toml", "-o", "out", cwd=tmp_path)
    assert "3 found on disk" in again.stderr


def test_an_interrupted_run_of_it_resumes(tmp_path):
    fabric, load = weft_fluid.Fluid(nodes=8), weft.Poisson(load=0.5, sizes="fixed:20KB", flows=80)
    whole, looks = weft.run(fabric, load, seed=2), []
    with pytest.raises(weft.Interrupted):
        weft.run(fabric, load, seed=2, progress=lambda run: looks.append(run) or len(looks) == 4,
                 checkpoint=weft.Checkpoint.beside(tmp_path / "r"))  # fmt: skip
    ran = typed("resume", str(tmp_path / "r"))
    assert ran.returncode == 0, ran.stderr
    assert weft.Result.load(tmp_path / "r").observation.fingerprint == whole.observation.fingerprint


MINE = """
from dataclasses import dataclass
from weft.workload import Flows, Workload
from weft.units import param
@dataclass(frozen=True, kw_only=True)
class Pair(Workload):
    "One flow."
    size: int = param(1000, "bytes")
    def draw(self, *, nodes, link, seed):
        return Flows.of(nodes=nodes, src=[0], dst=[1], size=self.size, start=0)
"""


def test_a_class_in_the_folder_at_hand_needs_no_package_and_its_edits_are_noticed(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "s.toml").write_text(
        '[fabric]\nkind = "fluid"\nnodes = 4\n[workload]\nkind = "mine:Pair"\nsize = 5000\n'
    )
    first = typed("sweep", "s.toml", "-o", "out", cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    (tmp_path / "mine.py").write_text(MINE.replace("size=self.size", "size=2 * self.size"))
    assert typed("sweep", "s.toml", "-o", "out", cwd=tmp_path).returncode == 0
    runs = sorted((tmp_path / "out/runs").glob("fluid-*"))
    sizes = {int(weft.Result.load(run).flows.size[0]) for run in runs}
    assert sizes == {5000, 10000}  # the old numbers are not served for the new code


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("nothing", "a fabric must be module:Class or one of shoal, crossbar, packet, .*, not 'nothing'"),
        ("no_such_module:Fluid", "the fabric no_such_module:Fluid cannot be loaded: No module named 'no_such_module'"),
        ("weft_fluid:Nothing", "weft_fluid:Nothing must be a class .* not missing"),
        ("weft_fluid:Ring", "weft_fluid:Ring must be a class that derives from weft.fabrics.base.Fabric, not a type"),
    ],
)  # fmt: skip
def test_what_is_no_fabric_gets_a_sentence(name, sentence):
    with pytest.raises((BadInput, Unusable), match=f"^{sentence}$"):
        catalogue.fabric_class(name)


def test_a_fabric_that_cannot_be_imported_is_told_and_not_left_out(tmp_path):
    """A room with a broken import must not vanish without a word."""
    (tmp_path / "broken.py").write_text("import no_such_library\n")
    ran = typed("run", "broken:Fabric", "poisson", cwd=tmp_path)
    assert ran.returncode == 2 and "Traceback" not in ran.stderr
    assert ran.stderr == (
        "weft run broken:Fabric: the fabric broken:Fabric cannot be loaded: No module named 'no_such_library'\n"
    )


def test_a_room_of_weft_s_own_with_a_broken_import_is_told_too(tmp_path, monkeypatch, capsys):
    from weft.cli import main

    (tmp_path / "broken.py").write_text("import no_such_library\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(catalogue.FABRICS, "shoal", "broken:Shoal")
    assert main(["fabrics"]) == 0
    out, err = capsys.readouterr()
    assert "crossbar" in out and "weft fabrics: the fabric shoal cannot be loaded: No module named" in err
    assert main(["run", "shoal", "poisson", "--nodes", "8"]) == 2
    assert "the fabric shoal cannot be loaded" in capsys.readouterr().err
    assert main(["run", "--help"]) == 0
    assert "cannot be loaded" in " ".join(capsys.readouterr().out.split())


def test_the_page_prints_the_loop_as_it_is():
    for part in (loop.advance, loop.strides):
        assert inspect.getsource(part).strip() in PAGE


def test_the_page_names_all_that_a_fabric_and_a_run_may_say():
    from weft.fabrics.base import Fabric, Run

    for cls in (Fabric, Run):
        for name, thing in vars(cls).items():
            told = callable(thing) or isinstance(thing, property | staticmethod)
            if told and not name.startswith("_") and name not in LEFT_OUT:
                assert re.search(rf"`{name}\b", PAGE), name


LEFT_OUT = {"thaw", "freeze", "advance", "accept", "resolved", "inputs", "total", "share"}


def test_the_template_keeps_the_contract_and_agrees_with_its_twin():
    path = str(ROOT / "examples/template/src")
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{path}:{ROOT / 'src'}"}
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null",
         str(ROOT / "examples/template/tests")], capture_output=True, text=True, env=env,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout[-2000:]
