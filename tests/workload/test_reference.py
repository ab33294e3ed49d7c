"""docs/reference/workloads.md says what the code says; run this file to write its tables anew."""

import re
from dataclasses import MISSING, fields
from pathlib import Path

import numpy as np

from weft.cli.flags import RENAMED
from weft.units import GB, MB, TB, Rate, Size, Time, show_rate, show_size, show_time
from weft.workload import ENDLESS, WORKLOADS
from weft.workload.sizes import DISTRIBUTIONS, Empirical, Pareto, names
from weft.workload.training import MODELS

PAGE = Path(__file__).parents[2] / "docs/reference/workloads.md"
MIDDLE = np.array([(2**52 - 1) << 11], np.uint64)  # the word whose unit is a half


def default(field):
    shown = {Time: show_time, Rate: show_rate, Size: show_size}
    if field.default is MISSING:
        return "required"
    if isinstance(field.default, bool):
        return "yes" if field.default else "no"
    if field.default is None:
        return ""
    return shown.get(field.type, str)(field.default)


def parameters(name, thing):
    flags = [RENAMED.get((name, f.name), f.name).replace("_", "-") for f in fields(thing)]
    rows = [
        f"| `--{flag}` | {default(f)} | {f.metadata['help']} |" for flag, f in zip(flags, fields(thing), strict=True)
    ]
    return "\n".join(["| flag | default | what it is |", "| --- | --- | --- |", *rows])


def laws():
    rows = ["| name | parameters and their defaults |", "| --- | --- |"]
    for name, law in DISTRIBUTIONS.items():
        said = "; ".join(f"`{f.name}={default(f).replace(' ', '')}` {f.metadata['help']}" for f in fields(law))
        rows.append(f"| `{name}` | {said} |")
    return "\n".join(rows)


def measured():
    rows = ["| name | points | mean | median | where the points come from |", "| --- | --- | --- | --- | --- |"]
    for name in names():
        law = Empirical(name)
        median = int(law.draw(MIDDLE)[0])
        rows.append(
            f"| `{name}` | {len(law.size)} | {show_size(round(law.mean))} | {show_size(median)} | {law.citation} |"
        )
    return "\n".join(rows)


def truncation():
    rows = ["| `truncate` | mean of what is drawn | chance that 10^6 draws pass it |", "| --- | --- | --- |"]
    for limit in (100 * MB, 1 * GB, 10 * GB, 100 * GB, 1 * TB, ENDLESS):
        law = Pareto(truncate=limit)
        passed = 1 - (1 - (law.scale / limit) ** law.shape) ** 10**6
        rows.append(f"| {show_size(limit)} | {show_size(round(law.effective_mean()))} | {passed:.2g} |")
    return "\n".join(rows)


def models():
    head = "| name | layers | width | tokens of a sequence | weights of a layer | from |"
    rows = [head, "| --- | --- | --- | --- | --- | --- |"]
    for name, m in MODELS.items():
        rows.append(f"| `{name}` | {m.layers} | {m.width} | {m.sequence} | {m.weights / 1e6:.4g} M | {m.source} |")
    return "\n".join(rows)


def tables():
    """What belongs between `<!-- name -->` and `<!-- end -->`, by name."""
    return {name: parameters(name, workload) for name, workload in WORKLOADS.items()} | {
        "laws": laws(),
        "measured": measured(),
        "truncation": truncation(),
        "models": models(),
    }


def written(text):
    """`text` with every table as it should be."""
    for name, table in tables().items():
        text, count = re.subn(
            rf"(<!-- {name} -->\n).*?(<!-- end -->)", lambda m, t=table: f"{m[1]}{t}\n{m[2]}", text, flags=re.S
        )
        assert count == 1, f"{PAGE} must have one place for {name}, not {count}"
    return text


def test_the_reference_says_what_the_code_says():
    text = PAGE.read_text()
    assert text == written(text)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
