"""The site, by `make docs`: out/site/index.html opens from disk, and nothing is fetched when a page is viewed."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

project = "weft"
author = "the authors of weft"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["changelog.jinja"]
html_theme = "furo"
html_title = "weft"
html_show_sphinx = False
myst_heading_anchors = 4  # links to headings are checked
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
nitpicky = False
suppress_warnings = ["myst.header", "misc.highlighting_failure"]

LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?://|#|mailto:)([^)#\s]+)(?:#[^)\s]*)?\)")


def setup(app):
    """Docstrings are plain text here, and what a page says of files outside docs/ is their path."""
    app.connect("source-read", _paths)
    app.connect("autodoc-process-docstring", _plain)


def _paths(app, name, source):
    page = Path(app.srcdir) / app.env.doc2path(name, base=False)

    def told(match):
        place = (page.parent / match[2]).resolve()
        if place.is_relative_to(app.srcdir) or not place.exists():  # what is nowhere is said by the builder
            return match[0]
        return f"{match[1]} (`{place.relative_to(ROOT)}`)"

    source[0] = LINK.sub(told, source[0])


def _plain(app, what, name, thing, options, lines):
    """Keep lines as they are; names in backticks are code."""
    out = []
    for line in lines:
        words = re.sub(r"([\\*|_])", r"\\\1", line)
        words = re.sub(r"`([^`]+)`", lambda match: "``" + match[1].replace("\\", "") + "``\\ ", words)
        out.append(f"| {words}" if line.strip() else "")
    lines[:] = [*out, ""]
