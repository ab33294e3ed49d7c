from dataclasses import MISSING, fields
from pathlib import Path

from weft.fabrics.shoal import Shoal

PAGE = Path(__file__).parents[3] / "docs/fabrics/shoal.md"


def rows():
    """The table of parameters, as the page must hold it."""
    for field in fields(Shoal):
        default = field.default
        shown = "required" if default is MISSING else "not given" if default is None else str(default)
        yield f"| `{field.name}` | {shown} | {field.metadata['help']} |"


def test_the_page_lists_every_parameter():
    page = PAGE.read_text(encoding="utf-8")
    assert [line for line in page.splitlines() if line.startswith("| `")] == list(rows())
