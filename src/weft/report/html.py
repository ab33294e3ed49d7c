"""Tables for notebooks."""

from html import escape


def result_table(result) -> str:
    """A result: completion times by class of flow, and what its summary notes."""
    from weft.report.tables import number, title

    summary = result.summary()
    names = ("mean", "p50", "p90", "p99", "p99.9", "max")
    some = [(kind, times) for kind, times in summary["fct_us"].items() if kind in summary["flows"]]
    rows = [[kind, number(summary["flows"][kind]), *(number(times[name]) for name in names)] for kind, times in some]
    done = f"{summary['finished']:,} flows finished, {summary['unfinished']:,} not"
    return f"<b>{escape(title(summary))}</b>" + table(
        ["flows", "number", *(f"{name} µs" for name in names)], rows, [done, *summary["notes"]]
    )


def table(head, rows, notes=()) -> str:
    """A table of texts, with notes under it."""
    top = "".join(f"<th style='text-align:left'>{escape(str(cell))}</th>" for cell in head)
    body = "".join(
        "<tr>" + "".join(f"<td style='text-align:left'>{escape(str(cell))}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    under = "".join(f"<div style='font-size:85%;color:#666'>{escape(note)}</div>" for note in notes)
    return under if not head else f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>{under}"
