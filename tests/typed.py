"""Commands as people type them: in a pseudo-terminal and in a pipe.

`Typist` keeps one process with weft imported and forks it for every command, so that a command costs what it does and
not what importing NumPy and Numba costs; kernels that it has compiled, its children have too. What a child runs is what
the script `weft` runs, on a terminal of its own or on pipes.
"""

import contextlib
import io
import json
import os
import pty
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LONG = tomllib.loads((Path(__file__).parent / "long.toml").read_text("utf-8"))  # command -> why tests leave it out
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


class Said(NamedTuple):
    """What came of a command; on a terminal `out` has both streams."""

    code: int  # negative: ended by that signal
    out: str
    err: str
    cpu: float  # seconds

    @property
    def text(self) -> str:
        """All that was shown, without colours and the moves of a progress bar."""
        return ESCAPES.sub("", self.out + self.err)

    @property
    def done(self) -> bool:
        """Whether the command did what it was asked; a figure says with 1 that a claim differs."""
        differs = re.search(r'^differs  \[|"verdict": "differs"', self.text, re.MULTILINE) is not None
        return self.code == int(differs) and "Traceback" not in self.text


class Command(NamedTuple):
    """A command of a page, and what the page prints after it."""

    page: str
    line: str
    shown: str

    @property
    def tokens(self) -> list[str]:
        """Its words after `weft`, as a shell would split them."""
        return shlex.split(self.line, comments=True)[1:]

    def shows(self, out: str) -> bool:
        """Whether this is what the page prints, which may leave lines out with …"""
        parts = re.split(r"^…\n", self.shown, flags=re.MULTILINE)
        return re.fullmatch(r"(?:.*\n)*".join(map(re.escape, parts)), out) is not None


def prepared(folder: Path) -> Path:
    """`folder` with what the pages take for granted: studies, examples, a trace, and a file of one's own."""
    for name in ("studies", "examples"):
        (folder / name).symlink_to(ROOT / name)
    shutil.copy(ROOT / "examples/trace.csv", folder / "flows.csv")
    for name in ("own.py", "own.toml"):
        shutil.copy(ROOT / "examples" / name, folder / name)
    return folder


def commands(page: Path) -> list[Command]:
    """Every command of the console blocks of a page, in order."""
    name = page.relative_to(ROOT).as_posix()
    blocks = [re.split(r"^\$ ", block, flags=re.MULTILINE)[1:] for block in CONSOLE.findall(page.read_text("utf-8"))]
    return [Command(name, *entry.partition("\n")[::2]) for block in blocks for entry in block]


def listed(*words: str) -> list[str]:
    """The commands that `weft … --help` lists."""
    from weft.cli import main

    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main([*words, "--help"]) == 0
    return re.findall(r"^│ (\w[\w-]*) ", out.getvalue().partition("─ Commands ─")[2], re.MULTILINE)


class Typist:
    """`with Typist() as typist: typist.types(["fabrics"], terminal=True)`."""

    def __enter__(self):
        path = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
        self.process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": path},
        )  # fmt: skip
        self.practised: set[str] = set()
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def types(self, tokens, *, terminal: bool, folder=".", patience: float = 300) -> Said:
        """Run `weft` with these tokens in `folder`."""
        return self._ask(tokens=list(map(str, tokens)), terminal=terminal, folder=str(folder), patience=patience)

    def practises(self, tokens) -> Said:
        """Run a command within the process that is forked, so that what it compiles is there for those that follow."""
        return self._ask(tokens=list(map(str, tokens)), terminal=None, folder=".", patience=0)

    def _ask(self, **what) -> Said:
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer, "the process that runs the commands has died"
        return Said(*json.loads(answer))


# ---------------------------------------------------------------- in the process that is forked


def serve():
    """Answer requests on stdin until it closes."""
    answers = os.fdopen(os.dup(1), "w")
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 1)
    _ready()
    for line in sys.stdin:
        ask = json.loads(line)
        said = _within(ask["tokens"]) if ask["terminal"] is None else _forked(**ask)
        answers.write(json.dumps(said) + "\n")
        answers.flush()


def _ready():
    """Import what most commands need: Numba alone takes a command half a second."""
    from importlib import import_module
    from pkgutil import walk_packages

    from weft import fabrics

    rooms = [place.partition(":")[0] for place in fabrics.FABRICS.values()]
    every = [one.name for one in walk_packages(fabrics.__path__, "weft.fabrics.")]
    kernels = [name for name in every if name.endswith(".kernel") and ".gpu." not in name]
    often = ("weft.cli.run", "weft.cli.sweep", "weft.experiment", "weft.metrics", "weft.report.tables")
    for name in (*often, "weft.report.plots", "pyarrow.parquet", *rooms, *kernels):
        import_module(name)
    registry = import_module("numba.core.registry").cpu_target
    registry.typing_context.refresh()
    registry.target_context.refresh()


def _within(tokens) -> Said:
    import weft.cli

    began = time.process_time()
    code = weft.cli.main(tokens)
    sys.stdout.flush()
    return Said(code, "", "", time.process_time() - began)


def _forked(tokens, terminal, folder, patience) -> Said:
    reads = {}  # descriptor -> which of (out, err) it is
    if terminal:
        pid, screen = pty.fork()
        reads = {screen: 0}
    else:
        pipes = [os.pipe(), os.pipe()]
        pid = os.fork()
        if pid == 0:
            os.setsid()  # a group of its own, as on a terminal: what it starts ends with it
            for number, (_, end) in enumerate(pipes, 1):
                os.dup2(end, number)
        for _, end in pipes:
            os.close(end)
        reads = {pipes[0][0]: 0, pipes[1][0]: 1}
    if pid == 0:
        _child(tokens, folder)
    heard = [b"", b""]
    end = time.monotonic() + patience
    while reads and time.monotonic() < end:
        for one in select.select(list(reads), [], [], 1)[0]:
            try:
                more = os.read(one, 1 << 16)
            except OSError:  # a terminal that its last user has left
                more = b""
            if more:
                heard[reads[one]] += more
            else:
                os.close(one)
                del reads[one]
    if reads:
        os.killpg(pid, signal.SIGKILL)
        for one in reads:
            os.close(one)
    _, status, usage = os.wait4(pid, 0)
    out, err = (text.decode("utf-8", "replace").replace("\r\n", "\n") for text in heard)
    return Said(os.waitstatus_to_exitcode(status), out, err, usage.ru_utime + usage.ru_stime)


def _child(tokens, folder):
    """Be the command; does not return."""
    code = 70
    try:
        os.chdir(folder)
        os.environ["TERM"] = "xterm"
        sys.stdin = open(os.devnull)  # noqa: SIM115
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        import weft.cli

        code = weft.cli.main(tokens)
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    serve()
