"""Numbers that papers print, drawn as points beside our lines."""

TEXT = "the paper's text"  # the name of what is printed, in every picture


def said(of: str) -> str:
    """The name of what is printed of one line among several."""
    return f"{of}: {TEXT}"


def marks_only(plot, *names):
    """The plot with no line between the points of these names: the text states them, and nothing in between."""
    for axes in plot.figure.axes:
        shown = axes.get_legend().legend_handles if axes.get_legend() else []
        for line in (*axes.lines, *shown):
            if line.get_label() in names:
                line.set_linestyle("none")
    return plot
