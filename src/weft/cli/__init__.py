"""The command line, one file per command. A command's module is imported when it is called, so that help is quick."""

import atexit
import gc
import os
import signal
import sys
import threading
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise

FIRST = "weft run shoal poisson --nodes 64 --load 0.6"
COMMANDS = {
    "run": "Carry a workload over a fabric, and say what came out.",
    "resume": "Go on with a run that was interrupted.",
    "sweep": "Run what is missing of a study, many runs described in a TOML file.",
    "compare": "Compare fabrics: ratios to the first, CDFs over each other, intervals over seeds.",
    "rerun": "Run a result's call again and compare fingerprints.",
    "show": "Print results that were saved, and draw them over time.",
    "bench": "Measure how fast a fabric is simulated on this machine.",
    "fabrics": "List the fabrics, or the parameters of one.",
    "workloads": "List the workloads, or the parameters of one.",
    "schedule": "Who may speak when: the schedule of a rack, and of each of its switches.",
    "groomer": "Several ports onto one faster link and back, by EEP or IEEE 802.1ad: latency, buffers and jitter.",
    "wire": "Bits on the wire: encode and decode headers, cells and frames, and print their layout.",
    "rtl": "Gates: the designs as hardware, checked cycle for cycle against the models.",
    "figure": "One figure of one paper, ours beside theirs.",
    "cost": "What it would cost: parts, prices, power, cables and memory, with no simulation.",
    "presets": "List the presets of packet networks' transports.",
    "stress": "Vary seed, MTU, ties and timeouts of a comparison, and see its conclusions move.",
}
NESTED = ("run", "bench", "cost", "schedule", "wire", "rtl")  # their messages begin with two words: `weft run shoal: …`


def build(tokens):
    """The `weft` command with the module of the subcommand that `tokens` ask for, and only that one."""
    from cyclopts import App

    root = App(
        name="weft",
        help=f"A laboratory for scheduled datacenter fabrics.\n\nA first run: `{FIRST}`",
        version=_version,
        help_format="markdown",
        suppress_keyboard_interrupt=False,  # it has something to say
    )
    for name, sentence in COMMANDS.items():
        if find_spec(f"weft.cli.{name}") is None:
            continue
        if tokens[:1] == [name]:
            module = import_module(f"weft.cli.{name}")
            root.command(module.make(tokens[1:]) if hasattr(module, "make") else module.app)
        else:
            root.command(App(name=name, help=sentence))
    return root


def main(tokens=None) -> int:
    """Run a command; say what went wrong in one sentence on stderr. Returns the exit code.

    0 done, 1 a claim or monitor failed, 2 bad input, 130 interrupted.
    """
    from weft.errors import MonitorTripped, WeftError

    if tokens is None:
        atexit.register(gc.freeze)  # no look for cycles on the way out, which takes a quarter of a second
    tokens = sys.argv[1:] if tokens is None else list(tokens)
    _ready_streams()
    if "--on=gpu" in tokens or ("--on", "gpu") in pairwise(tokens):
        from weft.engine.wake import wake

        wake()
    name = " ".join(["weft", *_words(tokens)])
    try:
        with _terminated():
            code = _call(tokens)
        sys.stdout.flush()
        return code
    except MonitorTripped as error:
        return _say(name, error, 1)
    except WeftError as error:
        return _say(name, error, 2)
    except KeyboardInterrupt as stop:
        return _say(name, stop.args[0] if stop.args else "interrupted", 130)
    except MemoryError:
        return _say(name, "the machine has no more memory for this run", 2)
    except BrokenPipeError:  # `weft … | head`: whoever read has had enough
        _say_no_more()
        return 0
    except OSError as error:
        if error.filename is not None:  # not of what is printed: a bug of ours
            raise
        _say_no_more()
        return _say(name, f"what is printed cannot be written: {(error.strerror or str(error)).lower()}", 2)


@contextmanager
def _terminated():
    """Let SIGTERM end a command as Ctrl-C does: batch systems and `timeout` send it."""

    def stop(number, frame):
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _call(tokens) -> int:
    from cyclopts import CycloptsError

    from weft.errors import BadInput

    root = build(tokens)
    if not tokens:
        tokens = ["--help"]
    try:
        found = root(tokens, exit_on_error=False, print_error=False, result_action="return_value")
    except CycloptsError as error:
        raise BadInput(_sentence(error)) from None
    return found if isinstance(found, int) else 0


def _words(tokens):
    """The command's words: one, or two where there is a second level."""
    words = tokens[: 2 if tokens and tokens[0] in NESTED else 1]
    return [word for word in words if not word.startswith("-")]


def _sentence(error) -> str:
    """What the parser has to say, as one of our sentences."""
    import cyclopts

    text = " ".join(str(error).split()).removesuffix(".")
    if isinstance(error, cyclopts.MissingArgumentError) and error.argument is not None:
        hint = text.partition("Did you mean")[2]
        return f"{error.argument.name} must be given a value" + (f"; did you mean{hint}" if hint else "")
    return text[:1].lower() + text[1:]


def _say(name, error, code) -> int:
    print(f"{name}: {error}", file=sys.stderr)
    return code


def _ready_streams():
    """Make sure that both streams take whatever is printed."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # `weft … >&-`
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        if hasattr(getattr(sys, name), "reconfigure"):  # a terminal without µ shows a question mark
            getattr(sys, name).reconfigure(errors="replace")


def _say_no_more():
    """Let what is still to be printed go nowhere, or Python would try again on its way out."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _version() -> str:
    from weft.metrics.provenance import version

    return f"weft {version()}"
