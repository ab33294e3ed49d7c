"""`weft rerun DIR`: make a result's call again, and compare fingerprints."""

from typing import Annotated

from cyclopts import App, Parameter

from weft.cli.options import Output, print_json, say
from weft.errors import BadResult

app = App(name="rerun", help_format="markdown")
OUTPUT = Output()


@app.default
def rerun(
    folder: Annotated[str, Parameter(help="a result folder", metavar="DIR")],
    *,
    common: Annotated[Output, Parameter(name="*")] = OUTPUT,
) -> int:
    """Run a result's call again and compare fingerprints.

    The call is rebuilt from what the result says of itself. The exit code is 0 if the fingerprints are equal, else 1.
    """
    from weft.catalogue import rebuild_call
    from weft.cli.progress import watching
    from weft.experiment import run
    from weft.metrics import Result
    from weft.sources import digest_of
    from weft.workload.files import PIPE, inputs

    old = Result.load(folder)
    if old.partial:
        raise BadResult(f"{folder} must be a whole result, not one of a run that was interrupted")
    fabric, workload = rebuild_call(old.provenance)
    for path, digest in inputs(fabric, workload).items():
        if digest == PIPE:
            raise BadResult(f"{path} must be a file to be read again, not {PIPE}")
        if old.provenance.get("inputs", {}).get(path, digest) != digest:
            raise BadResult(f"{path} must be the file that {folder} was drawn from, not one with other content")
    until = old.provenance.get("until")
    with watching("rerun", quiet=common.quiet, json=common.json) as progress:
        new = run(fabric, workload, seed=old.seed, until=until, progress=progress)
    was, is_now = old.observation.fingerprint, new.observation.fingerprint
    same_code = old.provenance.get("sources") == digest_of(fabric, workload)
    if common.json:
        print_json({"equal": was == is_now, "fingerprint": is_now, "was": was, "same_sources": same_code})
    elif was == is_now:
        print(f"{folder}: the same again, {is_now}")
    if was == is_now:
        return 0
    reason = "by the same source code" if same_code else "by other source code than now"
    say(f"weft rerun: the fingerprint of {folder}, made {reason}, must be {was}, not {is_now}")
    return 1
