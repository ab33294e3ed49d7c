"""The files a workload reads, so that a result can say which content it was drawn from."""

from hashlib import sha256
from pathlib import Path

from weft.errors import BadInput
from weft.workload.sizes import Empirical, names, sizes
from weft.workload.traces import Trace


def inputs(workload) -> dict[str, str]:
    """SHA-256 in hex of every file that `workload` reads, by path; empty for most.

    Two workloads that are equal draw the same flows only if this is equal too.
    """
    paths = [workload.path] if isinstance(workload, Trace) else []
    for name in (getattr(workload, "sizes", None), getattr(workload, "shorts", None)):
        law = sizes(name) if name is not None else None
        if isinstance(law, Empirical) and law.name not in names():
            paths.append(law.name)
    try:
        return {path: sha256(Path(path).read_bytes()).hexdigest() for path in paths}
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadInput(f"what a workload reads must be files that can be read: {paths[0]}: {reason}") from None
