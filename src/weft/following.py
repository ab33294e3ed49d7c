"""follow(result, flow): the steps of one flow of a run, exact and bounded, told by the twin that carries it again."""

import re

from weft import catalogue
from weft.errors import BadInput, WeftError, require
from weft.fabrics.base import Step

LINES = 400  # steps that are shown at most


def parse(text: str) -> int:
    """The flow that `flow 17` names."""
    match = re.fullmatch(r"\s*(?:flow\s+)?([0-9]{1,18})\s*", text)
    if not match:
        raise BadInput(f"what is followed must look like 'flow 17', not {text!r}")
    return int(match[1])


def follow(result, flow: int) -> list[Step]:
    """Every step of the flow that the result calls `flow`: released, sent, queued, parked, delivered, lost, and why.

    The run is carried again, up to the end of that flow, by the fabric's twin; that both agree on when the flow was
    done is checked.
    """
    fabric, workload = catalogue.rebuild_call(result.provenance)
    demand = workload.draw(nodes=fabric.nodes, link=fabric.link, seed=result.seed)
    flows = demand.table
    rows = [f for f, name in enumerate(flows.id.tolist()) if name == flow]
    require(len(rows) == 1, "what is followed", f"one of the {len(flows):,} flows of the run", f"flow {flow}")
    f = rows[0]
    done = int(result.observation.finish[f])
    until = done if done >= 0 else int(result.observation.now)
    steps, twin = fabric.follow(demand, f, seed=result.seed, until=until)
    if done >= 0 and twin != done:
        raise WeftError(f"the twin must end flow {flow} at {done} ps as the run did, not at {twin}: a bug of ours")
    return steps


def lines(steps: list[Step], most: int = LINES) -> list[str]:
    """The steps as a table for the terminal, the first and the last of them where they are many."""
    shown = steps if len(steps) <= most else [*steps[: most // 2], None, *steps[-(most - most // 2) :]]
    rows = [("time (us)", "item", "what", "where", "why")]
    for step in shown:
        if step is None:
            rows.append(("…", "", f"{len(steps) - most:,} steps more", "", ""))
        else:
            item = "" if step.item < 0 else str(step.item)
            rows.append((f"{step.time / 1e6:,.6f}", item, step.what, step.where, step.why))
    wide = [max(len(row[k]) for row in rows) for k in range(4)]
    return [f"{a:>{wide[0]}}  {b:>{wide[1]}}  {c:<{wide[2]}}  {d:<{wide[3]}}  {e}".rstrip() for a, b, c, d, e in rows]
