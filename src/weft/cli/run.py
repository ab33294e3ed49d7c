"""`weft run FABRIC WORKLOAD`: flags from the two descriptions, one run, its result."""

import inspect
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from tempfile import mkdtemp
from typing import Annotated

from cyclopts import App, Parameter

from weft import catalogue
from weft.cli import options
from weft.cli.flags import Flags, command, keyword
from weft.cli.options import RUNNING, Running, say
from weft.errors import BadInput, Unusable, WeftError
from weft.files import check_place, resolved

ALONE = {"groomer": "weft.cli.groomer"}  # what brings its own traffic: `weft run groomer` is `weft groomer`


def make(tokens) -> App:
    """The command; if the tokens already name a fabric, with that one only."""
    app = App(name="run", help="Carry a workload over a fabric, and say what came out.", help_format="markdown")
    asked, names = tokens[:1], catalogue.fabrics()
    if asked and (asked[0] in names or ":" in asked[0]):
        app.command(_fabric(asked[0], tokens[1:2]))
        return app
    for name in ALONE:
        app.command(import_module(ALONE[name]).app)
    for name in names:
        try:
            app.command(_fabric(name))
        except Unusable as problem:
            app.command(App(name=name, help=str(problem)))
    return app


def _fabric(name, asked=()) -> App:
    """The command of one fabric, with every workload it carries, and the one asked for if that is in no list."""
    cls = catalogue.fabric_class(name)
    app = App(name=name, help=inspect.getdoc(cls), help_format="markdown")
    kinds = catalogue.workloads(cls)
    kinds |= {word: catalogue.workload_class(word, cls) for word in asked if ":" in word}
    for workload, kind in kinds.items():
        app.command(command_of(name, cls, workload, kind), name=workload)
    return app


def command_of(name, cls, workload, kind):
    """The command that runs the workload `kind` on the fabric `cls`, by their names."""
    shared = run_options()
    taken = {"output", "follow", "plot", "memory", "json", "quiet", "checkpoint_every", *(p.name for p in shared)}
    traffic = Flags(kind, workload, "Workload", taken, order=2)
    fabric = Flags(cls, name, "Fabric", {*taken, *traffic.names}, order=1)

    def call(*, seed, until, resume, on, running, **given):
        return execute(
            fabric.build(given), traffic.build(given), seed=options.seed(seed), until=options.until(until),
            resume=resume, on=on, running=running, title=f"{name} {workload}",
        )  # fmt: skip

    return command(call, workload, inspect.getdoc(kind), [*fabric.parameters, *traffic.parameters, *shared])


def run_options() -> list:
    """The parameters of every run, whatever is run."""

    def about(help, **more):
        return Parameter(help=help, group=RUNNING, **more)

    seed = about("of everything random; the same seed gives the same result, on any machine", metavar="INT")
    until = about("stop after this much simulated time", metavar="TIME")
    on = about("gpu: run on the GPU of this machine, with the same result", metavar="WHERE")
    resume = about("go on from the checkpoint beside the output folder", negative="", show_default=False)
    return [
        keyword("seed", Annotated[str, seed], "0"),
        keyword("until", Annotated[str | None, until]),
        keyword("resume", Annotated[bool, resume], False),
        keyword("on", Annotated[str | None, on]),
        keyword("running", Annotated[Running, Parameter(name="*")], Running()),
    ]


def execute(fabric, workload, *, seed, until, resume, running: Running, title: str, on: str | None = None) -> int:
    """Run, save, print. Returns the exit code."""
    from weft.checkpoint import Checkpoint
    from weft.cli.progress import watching
    from weft.experiment import Interrupted, run
    from weft.following import parse
    from weft.metrics import Result
    from weft.workload.files import named

    memory, checkpoint, every = running.memory_bytes, None, running.every
    if running.follow is not None:
        parse(running.follow)  # a sentence now, not after the run
        require_flows(workload.draws, "followed")
    if running.plot is not None:
        check_picture(running.plot, [*named(fabric), *named(workload)])
        require_flows(workload.draws)
    if running.output is not None:
        Result.check_place(running.output)
        checkpoint = Checkpoint.beside(running.output, every)
        if checkpoint.exists() and not resume:
            raise WeftError(f"{checkpoint.path} holds an unfinished run: add --resume to go on with it, or delete it")
    if resume:
        if checkpoint is None:
            raise WeftError("--resume must be given with the -o of the run that was interrupted")
        if not checkpoint.exists():
            say(f"{checkpoint.path} is not there: starting from the beginning")
    try:
        with watching(title, quiet=running.quiet, json=running.json) as progress:
            result = run(
                fabric, workload, seed=seed, until=until, memory=memory, progress=progress, checkpoint=checkpoint, on=on
            )
    except Interrupted as stopped:
        if stopped.result.partial:
            return _interrupted(stopped.result, running, checkpoint)
        result = stopped.result  # the run was done when it came
    problem = None
    with rescued(result, running):
        if checkpoint is not None:
            try:
                result.save(running.output)  # before it is printed: whoever reads may have gone
                checkpoint.remove()
            except WeftError as error:
                problem = error
        if running.json and running.follow is not None:
            options.print_json({**result.summary(), "steps": told_steps(result, running.follow)})
        else:
            options.print_result(result, running.json)
        if problem is not None:
            raise problem
        if checkpoint is not None:
            if checkpoint.problem:
                say(f"on the way {checkpoint.problem}")
            if not running.json:
                say(f"saved in {running.output}")
        if running.plot is not None:
            draw(result, running.plot, running.json)
        if running.follow is not None and not running.json:
            print()
            print_steps(result, running.follow)
    return 0


def told_steps(result, text: str) -> list[dict]:
    """What happened to the cells or packets of a flow, as data."""
    from weft.following import follow, parse

    return [step._asdict() for step in follow(result, parse(text))]


def print_steps(result, text: str) -> None:
    """Tell what happened to the cells or packets of a flow."""
    from weft.following import follow, lines, parse

    print("\n".join(lines(follow(result, parse(text)))))


@contextmanager
def rescued(result, running):
    """Whatever goes wrong in the block, the result of a run that is done is kept, and it is said where."""
    try:
        yield
    except BrokenPipeError:  # whoever read has had enough
        raise
    except Exception:  # whatever it is, and it is raised again: the run may have taken days
        from weft.checkpoint import is_whole

        if running.output is None or not is_whole(running.output):
            with suppress(OSError, WeftError):
                place = Path(mkdtemp(prefix="weft-result-")) / "result"
                result.save(place)
                say(f"the result is kept in {place}")
        raise


def _interrupted(result, running, checkpoint) -> int:
    options.print_result(result, running.json)
    if checkpoint is None:
        say("interrupted: with -o DIR an interrupted run can be resumed")
    elif checkpoint.problem:
        say(f"interrupted, and it cannot be resumed: {checkpoint.problem}")
    else:
        say(f"interrupted: go on with weft resume {running.output}")
    return 130


def check_picture(path, inputs=()) -> None:
    """Raise, before a run, the sentence that drawing into `path` would raise after it, or would have to.

    inputs: files that the run reads, which the numbers of the picture must not replace.
    """
    from weft.report.plots import Plot

    Plot.check_name(path)
    for place in (path, Path(path).with_suffix(".csv")):
        check_place(place)
        if resolved(place) in [resolved(one) for one in inputs]:
            raise BadInput(
                f"a picture and its numbers must go into files of their own, not {place}, which the run reads"
            )


def require_flows(kind, what="drawn") -> None:
    """Raise a sentence unless a demand of this kind has completion times to draw, or flows to follow."""
    from weft.workload import Flows

    if not issubclass(kind, Flows):
        whose = "completion times can be drawn of flows" if what == "drawn" else "what is followed must be one of flows"
        raise WeftError(f"{whose} only, not of cells made inside a switch")


def draw(result, path, json: bool) -> None:
    """Draw the completion times of a result."""
    from weft.report.plots import fct_cdf
    from weft.report.tables import title

    fct_cdf(result, title=title(result.summary())).save(path)
    if not json:
        say(f"drawn in {path}")
