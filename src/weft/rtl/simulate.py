"""A design under way: rows of numbers in, rows of numbers out, in machine code or in Amaranth's own simulator.

A row holds every input (or output) port of the design, each in as many 32-bit words as it needs, lowest first, in the
order of `Ports`. `run` gives each row to the design for `every` clock cycles and notes the outputs after the last.
Where a design has a second clock, `fast`, a cycle is one of that, and the main clock ticks with the last of every
`ratio`.
"""

import ctypes
import os
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any, ClassVar, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from weft.errors import require
from weft.rtl import tools

FAST = "fast"
LONG = 200_000  # cycles from which optimising pays


class Port(NamedTuple):
    name: str
    width: int
    at: int  # first word in the row

    @property
    def words(self) -> int:
        return -(-self.width // 32)

    @property
    def member(self) -> str:
        """What Verilator calls it."""
        return self.name.replace("__", "___05F")


class Ports:
    """The ports of one direction, in order, and where each stands in a row."""

    def __init__(self, members):
        self.all, at = {}, 0
        for name, width in members:
            self.all[name] = Port(name, width, at)
            at += self.all[name].words
        self.words = at

    def column(self, rows: np.ndarray, name: str) -> np.ndarray:
        """Port `name` of every row, as uint64; ports beyond 64 bits are (rows, words) of uint32."""
        port = self.all[name]
        part = rows[:, port.at : port.at + port.words]
        if port.words == 1:
            return part[:, 0].astype(np.uint64)
        if port.words == 2:
            return part[:, 0] | part[:, 1].astype(np.uint64) << np.uint64(32)
        return part

    def put(self, rows: np.ndarray, name: str, values) -> None:
        """Write `values`, one per row, into port `name`."""
        port = self.all[name]
        values = np.asarray(values, np.uint64)
        rows[:, port.at] = values & np.uint64(0xFFFFFFFF)
        if port.words > 1:
            rows[:, port.at + 1] = values >> np.uint64(32)


def ports(component) -> tuple[Ports, Ports]:
    """The inputs and the outputs of a component."""
    from amaranth.hdl import Shape
    from amaranth.lib.wiring import Flow

    ins: list[tuple[str, int]] = []
    outs: list[tuple[str, int]] = []
    for path, member, value in component.signature.flatten(component):
        width = Shape.cast(value.shape()).width
        (ins if member.flow == Flow.In else outs).append(("__".join(map(str, path)), width))
    return Ports(ins), Ports(outs)


class Simulation:
    """A design that runs. `build_s` is what making it took, little if it was made before.

    With `vcd` a waveform is written into that file, from cycle `since` on; Amaranth's simulator writes all of it.
    `cycles` is about how long it will run: for few of them, the compiler is not asked to optimise.
    """

    def __init__(
        self, component, *, ratio: int = 1, vcd: str | None = None, since: int = 0, engine: str | None = None,
        cycles: int = 0,
    ):  # fmt: skip
        tools.amaranth()
        self.inputs, self.outputs = ports(component)
        self.cycles = 0
        engine = engine or ("amaranth" if tools.lacking() else "verilator")
        require(engine in ENGINES, "engine", f"one of {', '.join(ENGINES)}", engine)
        began = perf_counter()
        self.engine = engine
        self._made: Any = ENGINES[engine](component, self.inputs, self.outputs, ratio, vcd, since, cycles)
        self.build_s = perf_counter() - began

    def stimulus(self, rows: int) -> np.ndarray:
        """Rows of zeros for `run`."""
        return np.zeros((rows, max(self.inputs.words, 1)), np.uint32)

    def run(self, stimulus: np.ndarray, every: int = 1) -> np.ndarray:
        """Drive the design with every row for `every` cycles; the outputs after each."""
        out = np.zeros((len(stimulus), max(self.outputs.words, 1)), np.uint32)
        self._made.run(np.ascontiguousarray(stimulus, np.uint32), every, out)
        self.cycles += len(stimulus) * every
        return out

    def close(self) -> None:
        """Write what is left of the waveform, and let go of the design."""
        self._made.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Compiled:
    """Through Verilator and the C++ compiler, as a shared library, kept by the hash of all that it is made from."""

    _texts: ClassVar[WeakKeyDictionary] = WeakKeyDictionary()  # component -> its Verilog, which takes a second to write

    def __init__(self, component, inputs, outputs, ratio, vcd, since, cycles):
        if component not in self._texts:
            self._texts[component] = tools.without_reset(tools.verilog(component))
        text = self._texts[component]
        made = build(text, shim(inputs, outputs, ratio, _clocked(text)), vcd is not None, cycles >= LONG)
        self.library = ctypes.CDLL(str(made))
        self.library.weft_new.restype = ctypes.c_void_p
        self.handle = ctypes.c_void_p(
            self.library.weft_new(None if vcd is None else os.fsencode(vcd), ctypes.c_long(since))
        )

    def run(self, stimulus, every, out):
        pointer = ctypes.POINTER(ctypes.c_uint32)
        self.library.weft_run(
            self.handle, ctypes.c_long(len(stimulus)), ctypes.c_long(every), stimulus.ctypes.data_as(pointer),
            ctypes.c_long(stimulus.shape[1]), out.ctypes.data_as(pointer), ctypes.c_long(out.shape[1]),
        )  # fmt: skip

    def close(self):
        if self.handle is not None:
            self.library.weft_free(self.handle)
            self.handle = None


def _clocked(text):
    """Which of the two clocks the top module has."""
    top = text.rpartition("module top(")[2].partition(");")[0]
    names = {name.strip() for name in top.split(",")}
    return {"clk"} & names, {f"{FAST}_clk"} & names


def build(text: str, code: str, traced: bool, long: bool) -> Path:
    """The shared library for a design in Verilog, made now or found in the cache."""
    home, name = tools.folder(), tools.key(text, code, str(traced))
    quick, made = (home / f"{name}-{level}.so" for level in ("quick", "fast"))
    if made.exists():
        return made
    if not long:
        made = quick
        if made.exists():
            return made
    root = tools.need("verilator", "verilator")
    compile_ = [tools.need_compiler(), "-std=gnu++20", "-fPIC", "-w", "-DVL_TIME_CONTEXT", f"-I{root}/include",
                f"-I{root}/include/vltstd"]  # fmt: skip
    runtime = _runtime(home, root, compile_, traced)
    with tempfile.TemporaryDirectory(dir=home) as room:
        (Path(room) / "top.v").write_text(text)
        flags = ["--cc", "--x-initial", "0", "--x-assign", "0", "-Wno-fatal", "-Wno-lint", "-O3", "--output-split", "0"]
        if traced:
            flags += ["--trace-vcd"]
        tools.command(
            [str(root / "bin/verilator_bin"), *flags, "--top-module", "top", "--Mdir", "obj", "top.v"], cwd=room,
            env={"VERILATOR_ROOT": str(root)},
        )  # fmt: skip
        sources = sorted(path.name for path in (Path(room) / "obj").glob("*.cpp"))
        slow = {name for name in sources if name.endswith("__Slow.cpp")}  # run once, so not worth optimising
        # what is not optimised is compiled in one piece: the headers are a second's work, and more than a small design
        parts = {"-O0": slow, "-O1": {*sources} - slow} if long else {"-O0": {*sources}}
        for level, names in parts.items():
            program = "".join(f'#include "{name}"\n' for name in sorted(names))
            program += code if level == max(parts) else ""
            (Path(room) / f"part{level}.cpp").write_text(program)
            one = [*compile_, level, f"-DTRACED={int(traced)}", "-Iobj", "-c", f"part{level}.cpp"]
            tools.command([*one, "-o", f"part{level}.o"], cwd=room)
        objects = [f"part{level}.o" for level in parts]
        tools.command([compile_[0], "-shared", *objects, *map(str, runtime), "-o", "made.so"], cwd=room)
        os.replace(Path(room) / "made.so", made)
    return made


def _runtime(home, root, compile_, traced):
    """Verilator's own part, compiled once."""
    names = ["verilated", "verilated_threads", *(["verilated_vcd_c"] if traced else [])]
    out = []
    for name in names:
        made = home / f"{name}-{tools.key(' '.join(compile_))}.o"
        if not made.exists():
            with tempfile.TemporaryDirectory(dir=home) as room:
                tools.command([*compile_, "-O1", "-c", str(root / f"include/{name}.cpp"), "-o", "made.o"], cwd=room)
                os.replace(Path(room) / "made.o", made)
        out.append(made)
    return out


SHIM = """
#include "Vtop.h"
#include "verilated.h"
#if TRACED
#include "verilated_vcd_c.h"
#endif
struct Weft {
    VerilatedContext context;
    Vtop* top;
    unsigned long cycle = 0, since = 0;
#if TRACED
    VerilatedVcdC* vcd = nullptr;
#endif
};
extern "C" Weft* weft_new(const char* vcd, long since) {
    Weft* w = new Weft;
    w->since = since;
#if TRACED
    w->context.traceEverOn(true);
#endif
    w->top = new Vtop(&w->context, "top");
#if TRACED
    if (vcd) { w->vcd = new VerilatedVcdC; w->top->trace(w->vcd, 99); w->vcd->open(vcd); }
#endif
    return w;
}
extern "C" void weft_free(Weft* w) {
#if TRACED
    if (w->vcd) { w->vcd->close(); delete w->vcd; }
#endif
    w->top->final();
    delete w->top;
    delete w;
}
static inline void show(Weft* w, unsigned long time) {
#if TRACED
    if (w->vcd && w->cycle >= w->since) w->vcd->dump(time);
#endif
}
extern "C" void weft_run(Weft* w, long rows, long every, const uint32_t* in, long in_words, uint32_t* out,
                         long out_words) {
    Vtop* top = w->top;
    for (long row = 0; row < rows; ++row, in += in_words, out += out_words) {
        %(set)s
        for (long k = 0; k < every; ++k, ++w->cycle) {
            %(low)s
            top->eval();
            show(w, 10 * w->cycle);
            %(high)s
            top->eval();
            show(w, 10 * w->cycle + 5);
        }
        %(get)s
    }
}
"""


def shim(inputs: Ports, outputs: Ports, ratio: int, clocked) -> str:
    """The C++ between the rows and the design that Verilator made."""
    main, fast = clocked
    low = ["top->clk = 0;"] if main else []
    high = [f"if (w->cycle % {ratio} == {ratio - 1}) top->clk = 1;"] if main else []
    if ratio > 1 and main:
        low = [f"if (w->cycle % {ratio} == {ratio // 2 - 1}) top->clk = 0;"]
    if fast:
        low.append("top->fast_clk = 0;")
        high.append("top->fast_clk = 1;")
    return SHIM % {
        "set": "\n        ".join(_set(port) for port in inputs.all.values()),
        "get": "\n        ".join(_get(port) for port in outputs.all.values()),
        "low": " ".join(low),
        "high": " ".join(high),
    }


def _set(port):
    if port.width <= 32:
        return f"top->{port.member} = in[{port.at}];"
    if port.width <= 64:
        return f"top->{port.member} = in[{port.at}] | (uint64_t)in[{port.at + 1}] << 32;"
    return f"for (int k = 0; k < {port.words}; ++k) top->{port.member}[k] = in[{port.at} + k];"


def _get(port):
    if port.width <= 32:
        return f"out[{port.at}] = top->{port.member};"
    if port.width <= 64:
        return f"out[{port.at}] = top->{port.member}; out[{port.at + 1}] = top->{port.member} >> 32;"
    return f"for (int k = 0; k < {port.words}; ++k) out[{port.at} + k] = top->{port.member}[k];"


class Interpreted:
    """In Amaranth's simulator, where there is no compiler: the same rows, some thousand times slower."""

    PERIOD = 1e-6

    def __init__(self, component, inputs, outputs, ratio, vcd, since, cycles):
        from amaranth.hdl import Fragment
        from amaranth.lib.wiring import Flow
        from amaranth.sim import Simulator

        signals = {
            "__".join(map(str, path)): (member.flow == Flow.In, value)
            for path, member, value in component.signature.flatten(component)
        }
        self.inputs = [(port, signals[name][1]) for name, port in inputs.all.items()]
        self.outputs = [(port, signals[name][1]) for name, port in outputs.all.items()]
        fragment = Fragment.get(component, None)
        self.simulator = Simulator(fragment)
        domains = _domains(self.simulator)
        phase = self.PERIOD / 2
        if "sync" in domains:
            late = phase + self.PERIOD * (ratio - 1)
            self.simulator.add_clock(self.PERIOD * ratio, phase=late, domain="sync")
        if FAST in domains:
            self.simulator.add_clock(self.PERIOD, phase=phase, domain=FAST)
        self.domain = FAST if FAST in domains else "sync"
        self.time, self.work = 0.0, None
        self.simulator.add_testbench(self._drive, background=True)
        self.waves = self.simulator.write_vcd(vcd) if vcd is not None else None
        if self.waves is not None:
            self.waves.__enter__()

    async def _drive(self, context):
        while True:
            while not self.work:
                await context.delay(self.PERIOD / 8)  # not a tick: between two calls no cycle passes
            row, every, out = self.work.pop(0)
            for port, signal in self.inputs:
                value = sum(int(word) << 32 * k for k, word in enumerate(row[port.at : port.at + port.words]))
                context.set(signal, value & ((1 << port.width) - 1))
            for _ in range(every):
                await context.tick(self.domain)
            for port, signal in self.outputs:
                value = _number(context.get(signal))
                for k in range(port.words):
                    out[port.at + k] = value >> 32 * k & 0xFFFFFFFF

    def run(self, stimulus, every, out):
        self.work = [(stimulus[k], every, out[k]) for k in range(len(stimulus))]
        self.time += len(stimulus) * every * self.PERIOD
        self.simulator.run_until(self.time)

    def close(self):
        if self.waves is not None:
            self.waves.__exit__(None, None, None)
            self.waves = None


def _number(value):
    return value if isinstance(value, int) else value.as_bits()


def _domains(simulator):
    return set(simulator._design.fragment.domains)


ENGINES = {"verilator": Compiled, "amaranth": Interpreted}
