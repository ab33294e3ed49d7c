"""Does the cache of compiled kernels know when it is stale, and do decorators do what they say?"""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba import typeof, types

import weft
from weft import sources
from weft.engine import jit
from weft.engine.jit import bare, hot, part

ROOT = Path(weft.__file__).parent


def test_whatever_a_kernel_calls_is_in_the_key_of_its_cache():
    """Else an edit there goes unnoticed, and yesterday's machine code runs."""
    kernel = re.compile(r"^@(kernel|bare)\b", re.M)
    helper = re.compile(r"^@(part|hot|view|inlined|intrinsic|overload)\b", re.M)
    entries = [path for path in ROOT.rglob("*.py") if kernel.search(path.read_text())]
    assert len(entries) > 10
    for path in entries:
        module = ".".join(path.relative_to(ROOT.parent).with_suffix("").parts)
        keyed = set(sources.files([module]).values())
        for imported in re.findall(r"^from (weft[\w.]*) import", path.read_text(), re.M):
            place = ROOT.parent.joinpath(*imported.split(".")).with_suffix(".py")
            if place.exists() and helper.search(place.read_text()):
                assert place in keyed, f"{module} uses {imported}"


def test_an_edited_helper_elsewhere_changes_where_a_kernel_is_kept(tmp_path):
    """A kernel of a package that is not weft's, with its helper in another file."""
    package = tmp_path / "lab"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "helper.py").write_text("from weft.engine.jit import inlined\n@inlined\ndef add(a):\n    return a + 1\n")
    (package / "entry.py").write_text(
        "from lab.helper import add\nfrom weft.engine.jit import kernel\n@kernel\ndef go(a):\n    return add(a)\n"
    )
    call = "from lab.entry import go; from weft.engine.jit import cache_folder; print(go(1), cache_folder('lab.entry'))"

    def run():
        env = {"PYTHONPATH": f"{tmp_path}:{ROOT.parent}", "WEFT_CACHE": str(tmp_path / "cache"), "PATH": ""}
        return subprocess.run([sys.executable, "-c", call], capture_output=True, text=True, env=env, check=True).stdout

    first, again = run(), run()
    assert first == again and first.startswith("2 ")
    (package / "helper.py").write_text((package / "helper.py").read_text().replace("a + 1", "a + 2"))
    edited = run()
    assert edited.startswith("3 ") and edited.split()[1] != first.split()[1]


def test_what_files_import_is_found_on_disk_and_anew_when_it_is_not_there(tmp_path, monkeypatch):
    from weft.fabrics.shoal.gpu import racks

    def listed():
        sources._imports.cache_clear()
        sources._parsed.cache_clear()
        return list(sources.files([racks.__name__]))

    place = tmp_path / "imports"
    parsed, named = [], sources._named
    monkeypatch.setattr(sources, "folder", lambda name: place)
    monkeypatch.setattr(sources, "_named", lambda *given: parsed.append(given) or named(*given))
    everything = listed()  # nothing can be kept: there is no such folder
    assert len(parsed) > 50 and "weft/fabrics/shoal/gpu/racks.py" in everything
    place.mkdir()
    assert listed() == everything
    parsed.clear()
    assert listed() == everything and parsed == [] and len(list(place.iterdir())) == 1
    for damage in ("", "[]", "{"):
        (place / "known.json").write_text(damage)
        assert listed() == everything and len(parsed) > 50
        parsed.clear()


def test_an_import_that_is_added_is_seen_though_the_file_is_as_long_and_as_old_as_before(tmp_path, monkeypatch):
    (tmp_path / "one.py").write_text("")
    (tmp_path / "two.py").write_text("")
    script = tmp_path / "script.py"
    monkeypatch.setattr(sources, "folder", lambda name: tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    found = []
    for which in ("one", "two"):
        script.write_text(f"import {which}")
        os.utime(script, (1e9, 1e9))
        sources._imports.cache_clear()
        sources._parsed.cache_clear()
        found.append(sorted(sources.files(["script"])))
    assert found == [["/one.py", "/script.py"], ["/script.py", "/two.py"]]


def test_the_cache_is_apart_for_checked_indices(monkeypatch):
    jit.cache_folder.cache_clear()
    plain = jit.cache_folder("weft.engine.random")
    jit.cache_folder.cache_clear()
    monkeypatch.setattr(jit.config, "BOUNDSCHECK", 1)
    assert jit.cache_folder("weft.engine.random") != plain
    jit.cache_folder.cache_clear()


@hot
def element(a, i):
    return a[i]


@part
def doubled(a, i):
    return 2 * element(a, i)


@bare
def entry(a, i):
    return doubled(a, i) + 1


def test_a_kernel_holds_its_parts_which_have_no_machine_code_of_their_own():
    assert entry(np.arange(5), 3) == 7
    doubled.compile((typeof(np.arange(5)), types.int64))  # which the kernel did, unless it came from the cache
    assert all(isinstance(compiled.library, jit._Part) for compiled in doubled.overloads.values())


def test_numba_has_the_methods_that_parts_and_kernels_override():
    """A method that Numba renames would no longer be called: kernels would still be right, but compile for longer."""
    for ours in (jit._Part, jit._Kernel):
        names = [name for name in vars(ours) if not name.startswith("__") and name != "set_env"]
        assert names and all(hasattr(jit.JITCodeLibrary, name) for name in names), ours
    assert hasattr(jit.Compiler, "define_pipelines")


def test_a_numba_that_weft_cannot_build_on_is_named_in_a_sentence():
    program = "import sys, numba.core.codegen as c; del c.JITCodeLibrary\nfrom weft.cli import main; sys.exit(main())"
    words = ["run", "crossbar", "incast", "--ports", "8", "--fan-in", "3", "--bytes", "1KB"]
    told = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True)
    assert told.returncode == 2 and told.stderr.count("\n") == 1
    assert told.stderr.startswith("weft run crossbar: Numba must have the compiler that weft's kernels build on, not ")


def test_a_part_called_from_python_is_refused():
    with pytest.raises(TypeError):
        doubled(np.arange(5), 3)


def test_parts_see_an_index_out_of_range_when_bounds_are_checked(tmp_path):
    program = "import test_jit, numpy as np; test_jit.entry(np.arange(5), 9)"
    environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "WEFT_CACHE": str(tmp_path)}
    told = subprocess.run(
        [sys.executable, "-c", program], cwd=Path(__file__).parent, env=environment, capture_output=True, text=True
    )
    assert told.returncode == 1 and "IndexError: index is out of bounds" in told.stderr
