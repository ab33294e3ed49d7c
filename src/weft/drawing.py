"""How pictures look, and how they are kept: the house style, a picture with its numbers as csv beside it, and axes.

Colours are Okabe and Ito's, which the colour-blind can tell apart, and no line relies on colour alone. matplotlib's
settings are changed only while a picture is drawn, one at a time, and `pyplot` is never imported.
"""

import csv
import io
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from threading import RLock

import numpy as np

from weft.errors import BadInput, require
from weft.files import replaced

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")  # Okabe and Ito, 2008
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", (0, (6, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)), (0, (9, 3)), (0, (3, 1.5)), (0, (1, 3)))
FORMATS = ("svg", "pdf", "png")
FEW = 8  # points of a logarithmic axis that get a tick each


def line_style(k: int) -> dict:
    """How line k looks, as options of `plot`: like no other of the first 49. Marks are hollow in every second seven."""
    again = k // 7
    hollow = {"markerfacecolor": "white", "markeredgewidth": 1.2}
    filled = {"markeredgecolor": "white", "markeredgewidth": 0.6}
    return {**bare_style(k), "marker": MARKERS[(k + again) % 7], **(hollow if again % 2 else filled)}


def bare_style(k: int) -> dict:
    """The same without marks."""
    return {"color": PALETTE[k % 7], "linestyle": DASHES[(k + 3 * (k // 7)) % 7]}


STYLE = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same picture on every machine
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.titlepad": 8,
    "axes.labelsize": 9,
    "axes.labelcolor": "#333333",
    "axes.edgecolor": "#888888",
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.6,
    "xtick.color": "#888888",
    "ytick.color": "#888888",
    "xtick.labelcolor": "#333333",
    "ytick.labelcolor": "#333333",
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "legend.title_fontsize": 8,
    "legend.handlelength": 2.6,
    "figure.dpi": 100,
    "savefig.dpi": 200,
    "svg.hashsalt": "weft",  # the same data gives the same file
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
}


_ONE_AT_A_TIME = RLock()


@contextmanager
def house_style():
    """Draw in the house style; matplotlib's own settings come back afterwards."""
    from matplotlib import rc_context

    with _ONE_AT_A_TIME, rc_context(STYLE):
        yield


def styled(draw):
    """`draw` in the house style."""

    @wraps(draw)
    def styled(*arguments, **options):
        with house_style():
            return draw(*arguments, **options)

    return styled


@dataclass(frozen=True, eq=False)
class Plot:
    """A picture and the numbers in it."""

    figure: object  # matplotlib.figure.Figure
    data: list[dict]  # a row per point drawn, all with the same keys

    @staticmethod
    def check_name(path) -> str:
        """The format that the name of a picture asks for; a sentence if it asks for none that there is."""
        path = Path(path)
        form = path.suffix.lstrip(".").lower()
        if form not in FORMATS:
            raise BadInput(f"a picture's name must end in .svg, .pdf or .png, not {path.name!r}")
        return form

    def save(self, path, *, own: bool = False) -> Path:
        """Write the picture (svg, pdf or png, by the name) and, beside it, its numbers as csv; return the path.

        own: the name is none that a user typed, see `weft.files.replaced`.
        """
        path = Path(path)
        form = self.check_name(path)
        for place, content in ((path, self._bytes(form)), (path.with_suffix(".csv"), self.csv().encode())):
            with replaced(place, own=own) as fresh:
                fresh.write_bytes(content)
        return path

    def csv(self) -> str:
        """The numbers, a line per point."""
        text = io.StringIO()
        writer = csv.DictWriter(text, list(self.data[0]) if self.data else [], lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.data)
        return text.getvalue()

    def _bytes(self, form):
        out = io.BytesIO()
        undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}[form]
        with house_style():
            self.figure.savefig(out, format=form, bbox_inches="tight", pad_inches=0.08, metadata=undated)
        return out.getvalue()

    def _repr_png_(self):  # a notebook shows the plot itself
        return self._bytes("png")


def figure(panels=1, height=3.3, *, down=False):
    """An empty picture and its axes, in a row, or one below the other; `height` is that of one."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter

    size = (5.4, height * panels) if down or panels == 1 else (4.2 * panels, height)
    fig = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(fig)
    axes = [fig.add_subplot(*((panels, 1) if down else (1, panels)), k + 1) for k in range(panels)]
    for ax in axes:
        for line in (ax.xaxis, ax.yaxis):
            line.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,g}"))
    return fig, axes


def named(results):
    """[(name, result)] of a result, or of a dict of them."""
    require(not isinstance(results, dict) or len(results) > 0, "a picture", "of at least one result", "none")
    return list(results.items()) if isinstance(results, dict) else [("", results)]


def with_foot(made, foot):
    """The picture with a line under it."""
    if foot:
        made.figure.supxlabel(foot, x=0.01, ha="left", fontsize=7, color="#B03A2E")
    return made


def log_axis(ax, axis, points=()):
    """A logarithmic axis labelled 1, 10, 1,000 rather than in powers, where the numbers are short enough to be read.

    Where there are few points it is labelled at them: 8, 16, 32, 64 and not a lone 10.
    """
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

    (ax.set_xscale if axis == "x" else ax.set_yscale)("log")
    lines = ax.xaxis if axis == "x" else ax.yaxis
    lines.set_major_formatter(FuncFormatter(_decade))
    lines.set_minor_formatter(NullFormatter())
    if 1 < len(points) <= FEW:
        lines.set_major_locator(FixedLocator(list(points)))
        lines.set_minor_locator(NullLocator())


def from_zero(ax):
    """Let y begin at 0, with room above what was drawn."""
    top = ax.dataLim.ymax
    ax.set_ylim(0, 1.05 * top if top > 0 else None)


def _decade(value, _):
    if 1e-3 <= value < 1e7:
        return f"{value:,g}" if value < 1e6 else f"{value:,.0f}"
    return f"$10^{{{round(np.log10(value))}}}$" if value > 0 else ""


def finish(ax, title, legend, note=None):
    """Give the axes a title, and a legend that hides no line."""
    if title:
        ax.set_title(title)
    if legend:
        handles, names = ax.get_legend_handles_labels()
        outside = len(handles) > 4
        place = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0)} if outside else {"loc": "best"}
        shown = ax.legend(handles, names, **place, title=note, alignment="left")
        shown.get_title().set_color("#666666")
        if outside:  # the picture gets wider, not the axes narrower
            fig = ax.figure
            fig.set_figwidth(fig.get_figwidth() + shown.get_window_extent(fig.canvas.get_renderer()).width / fig.dpi)
