"""The documentation is true: the tutorial's programs print what it says, and generated pages are as generated."""

import ast
import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

import weft
from typed import listed, prepared
from weft.cli import COMMANDS, main
from weft.report.plots import BANDS
from weft.report.series import KINDS
from weft.units import show_number

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page):
    """(kind, content) of every fenced block of a page, in order."""
    return BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))


def play(page) -> list[tuple[str, str]]:
    """Run a page's programs and commands where we are; returns (printed, what the page says) for each."""
    names, compared, parts = {}, [], blocks(page)
    for k, (kind, content) in enumerate(parts):
        if kind == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(content, f"{page}, block {k}", "exec"), names)
            said = parts[k + 1][1] if k + 1 < len(parts) and parts[k + 1][0] == "text" else ""
            compared.append((out.getvalue(), said))
        elif kind == "console":
            for command in re.split(r"^\$ ", content, flags=re.MULTILINE)[1:]:
                line, _, expected = command.partition("\n")
                out = io.StringIO()
                with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
                    code = main(shlex.split(line)[1:])
                assert code == 0, line
                if expected:
                    compared.append((out.getvalue(), expected))
    return compared


def test_the_tutorial_prints_what_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for printed, said in play("docs/tutorial.md"):
        assert printed == said


def test_the_recipes_do_what_they_say(tmp_path, monkeypatch):
    monkeypatch.chdir(prepared(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    for printed, said in play("docs/recipes.md"):
        assert not said or printed == said
    made = ("cdf.svg", "runs/fan-in/fan-in.svg", "failing.svg", "heat.svg", "queues.svg", "own.png", "cost.svg")
    made += ("runs/own/own.svg",)
    assert all((tmp_path / name).stat().st_size > 1000 for name in made)
    own = (ROOT / "examples/own.py").read_text(encoding="utf-8")
    shown = next(text for kind, text in blocks("docs/recipes.md") if kind == "text" and "class Pairs" in text)
    assert shown in own


LINK = re.compile(r"(?<!!)\[[^\]]+\]\((?!https?://|mailto:)([^)#\s]*)(#[^)\s]*)?\)")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def anchors(page) -> set[str]:
    """What headings of a page are linked by, as GitHub and the site make them."""
    heads = re.findall(r"^#+ +(.*)$", re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target, anchor in LINK.findall(text):
        place = (page.parent / target).resolve() if target else page
        assert place.exists(), target
        if anchor and place.suffix == ".md":
            assert anchor[1:] in anchors(place), target + anchor


def test_the_page_on_study_files_names_every_key_and_every_picture():
    from weft.study import _KEYS, PICTURES

    page = (ROOT / "docs/reference/studies.md").read_text(encoding="utf-8")
    for name in (*_KEYS, *PICTURES, *KINDS, *BANDS):
        assert re.search(rf"[`\[]{name}[`\]]", page) or f'"{name}"' in page, name
    with_file = next(text for kind, text in blocks("docs/reference/studies.md") if kind == "toml")
    study = weft.study._study(tomllib.loads(with_file))
    assert list(study.called.values()) == ["Shoal channels 1", "Shoal channels 4", "Packet ndp", "Packet dctcp"]


def test_the_notebook_runs_from_top_to_bottom(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cells = json.loads((ROOT / "examples/compare.ipynb").read_text(encoding="utf-8"))["cells"]
    names = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            *body, last = ast.parse("".join(cell["source"])).body
            exec(compile(ast.Module(body, []), "compare.ipynb", "exec"), names)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), "compare.ipynb", "eval"), names)
                shown = getattr(value, "_repr_html_", None) or getattr(value, "_repr_png_", None)
                assert shown is None or shown()
            else:
                exec(compile(ast.Module([last], []), "compare.ipynb", "exec"), names)
    assert len(names["comparison"].entries) == 3


def test_the_page_of_failures_prints_what_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for printed, said in play("docs/fabrics/shoal-failures.md"):
        assert not said or printed == said


def test_a_study_in_the_tutorial_can_be_read(tmp_path):
    (study,) = [content for kind, content in blocks("docs/tutorial.md") if kind == "toml"]
    (tmp_path / "s.toml").write_text(study)
    assert len(weft.Study.load(tmp_path / "s.toml").points) == 8


def test_the_page_of_the_command_line_is_as_generated():
    from weft.cli.reference import page

    assert (ROOT / "docs/reference/cli.md").read_text(encoding="utf-8") == page(), "run `make docs`"


OF_EVERY_FABRIC = (("run",), ("bench",))  # described once: with the flags of fabric and workload


def leaves(*words) -> list[tuple[str, ...]]:
    """Every command below `words`, as `--help` lists them to a user."""
    subs = [] if words in OF_EVERY_FABRIC else listed(*words)
    return [leaf for sub in subs for leaf in leaves(*words, sub)] or [words]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_subcommand_is_described(name):
    text = (ROOT / "docs/reference/cli.md").read_text(encoding="utf-8")
    assert find_spec(f"weft.cli.{name}")
    for leaf in leaves(name):
        title = " ".join(("weft", *leaf))
        assert f"\n## {title}{' FABRIC WORKLOAD' if leaf in OF_EVERY_FABRIC else ''}\n" in text, title


def test_every_command_in_the_readme_parses_and_every_file_it_names_is_there():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (ROOT / target).exists(), target
    commands = [line for kind, content in blocks("README.md") if kind == "console" for line in content.splitlines()]
    assert any(line.startswith("$ make demo") for line in commands)
    for line in commands:
        if line.startswith("$ weft "):
            words = shlex.split(line, comments=True)[2:]
            names = [word for word in words[:3] if not word.startswith("-") and "/" not in word]
            with contextlib.redirect_stdout(io.StringIO()):
                assert main([*names, "--help"]) == 0, line


def test_every_link_of_the_pages_leads_somewhere():
    for page in ("docs/tutorial.md", "docs/design.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#:]+)\)", text):
            assert (ROOT / page).parent.joinpath(target).exists(), (page, target)


def test_the_readme_s_table_is_the_csv_s_beside_its_picture():
    rows = (ROOT / "docs/pictures/fct-goodput.csv").read_text().splitlines()
    points = [dict(zip(rows[0].split(","), row.split(","), strict=True)) for row in rows[1:]]
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for point in points:
        assert f"| {show_number(float(point['mean']))} ± " in text, point


@pytest.mark.parametrize("name", weft.__all__)
def test_every_public_name_can_be_had(name):
    assert getattr(weft, name) is not None


def test_every_change_is_one_sentence_in_a_file_that_says_what_it_did():
    for path in (ROOT / "changes").glob("*"):
        assert re.fullmatch(r"[\w.-]+\.(added|changed|fixed|removed)\.md", path.name), path.name
        assert len(path.read_text(encoding="utf-8").strip().splitlines()) == 1, path.name


def test_the_fragments_make_a_changelog():
    found = subprocess.run(
        [sys.executable, "-m", "towncrier", "build", "--draft", "--version", weft.__version__], cwd=ROOT,
        capture_output=True, text=True,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    for path in (ROOT / "changes").glob("*.md"):
        assert f"- {path.read_text(encoding='utf-8').strip()}\n" in found.stdout, path.name


def test_the_citation_and_the_package_are_of_one_version():
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    written = re.search(r'^version = "(\S+)"$', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert cited and written and cited[1] == written[1] == weft.__version__


def test_nothing_is_said_of_machines_or_people_in_our_pages():
    for path in (ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        assert "/work/" not in text and os.path.expanduser("~") + "/" not in text, path
