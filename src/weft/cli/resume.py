"""`weft resume DIR`: go on with a run that was interrupted or killed, from the checkpoint beside its folder."""

from typing import Annotated

from cyclopts import App, Parameter

from weft.cli.options import Resuming, Running
from weft.cli.run import execute

app = App(name="resume", help_format="markdown")
RESUMING = Resuming()


@app.default
def resume(
    folder: Annotated[str, Parameter(help="the output folder of the run", metavar="DIR")],
    *,
    resuming: Annotated[Resuming, Parameter(name="*")] = RESUMING,
) -> int:
    """Go on with a run that was interrupted; the result is that of a run that never was."""
    from weft.catalogue import rebuild_call
    from weft.checkpoint import Checkpoint, is_whole
    from weft.errors import BadInput

    checkpoint = Checkpoint.beside(folder)
    if not checkpoint.exists() and is_whole(folder):
        raise BadInput(f"{folder} must be a run that was interrupted, not one that is done; weft show prints it")
    call = checkpoint.call()
    fabric, workload = rebuild_call(call)
    title = f"{call['fabric']['kind']} {call['workload']['kind']}".lower()
    running = Running(output=folder, **vars(resuming))
    return execute(fabric, workload, seed=call["seed"], until=call["until"], resume=True, running=running, title=title)
