"""The reference page says what is true: its program prints its output, and it names every key and column."""

import contextlib
import inspect
import io
import re
from pathlib import Path

import pytest

from weft.metrics import Observation, Result, fairness, result
from weft.report import plots
from weft.workload.flows import Flows

PAGE = Path(__file__).parents[2] / "docs/reference/metrics.md"


@pytest.fixture(scope="module")
def page():
    return PAGE.read_text(encoding="utf-8")


def some_result():
    flows = Flows.of(nodes=2, src=[0], dst=[1], size=[1], start=[0])
    return Result.collect(None, None, flows, Observation(finish=[1], received=[1], now=1), seed=0)


def test_the_program_prints_what_the_page_says(page):
    program, printed = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", page, re.DOTALL).groups()
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(program, {})
    assert out.getvalue() == printed


def test_every_key_of_the_summary_has_its_row(page):
    summary = page.split("## The summary")[1].split("## Definitions")[0]
    named = [name for row in re.findall(r"^\| (`.*?) \|", summary, re.M) for name in re.findall(r"`(\w+)`", row)]
    assert sorted(named) == sorted(some_result().summary())
    for section in ("fct_us", "throughput", "queue", "lost", "offered", "goodput_gbps", "rate"):
        for inner in some_result().summary()[section]:
            assert f"`{inner}`" in summary, f"{section}.{inner}"


def test_every_file_and_column_on_disk_is_named(page):
    for name in (*result.FILES, *some_result()._flow_columns(), "ideal_ps"):
        assert f"`{name}`" in page, name


def test_every_ideal_and_every_plot_is_named(page):
    for module in (fairness, plots):
        for name, thing in inspect.getmembers(module, inspect.isfunction):
            own = thing.__module__ == module.__name__ and not name.startswith("_")
            if own and name != "jain" and not name.endswith("style"):
                assert re.search(rf"`{name}\b|\b{name}`|\b{name}\(", page), name
