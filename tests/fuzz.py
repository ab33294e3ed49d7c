"""Throw inputs at everything that reads one: flags, files of every format, result folders, checkpoints, wire decoders.

`make fuzz` runs it for minutes; `python tests/fuzz.py --inputs 2000 --seed 7` runs a share of it. Every input is drawn
from a seed that is printed with what went wrong, so that `--seed S --only K` throws the same input again. Nothing may
end in a traceback, hang (a limit of seconds of computing for each), print more than a screen, or exit with a code that
means something else. Runs that would simulate are stopped before their first event: what is asked comes before it.
"""

import argparse
import contextlib
import io
import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from unittest.mock import patch

ROOT = Path(__file__).resolve().parents[1]
SECONDS, WAIT = 20, 300  # that one input may compute, and take in all, on a busy machine
WORDS = ("", "0", "-1", "1", "8", "nan", "inf", "1e400", "9" * 30, "é", "\udcff", "a\0b", "none", "true", "[]", "{}",
         "{", "1ps", "3 parsecs", "-o", "--json", "../x", "/", "/dev/null", "x.csv", "x.toml", "x" * 300, "%s", "\n",
         ",", "1,2", "fixed:2KB", "websearch", "node 3 at 1us", "2KB", "100Gbps", "1us", "0.5", "16")  # fmt: skip
CORPUS = {
    "trace.csv": b"flow,src,dst,bytes,start\n0,0,1,100,0\n1,2,3,2000,0.000001\n",
    "trace.cm": b"Nodes 8\nConnections 1\n0->5 id 1 start 0 size 2000\n",
    "sizes.csv": b"# cited\nbytes,probability\n100,0.5\n200,1\n",
    "edges.csv": b"a,b,rate,delay\nh0,s,1Gbps,1us\nh1,s,1Gbps,1us\n",
    "study.toml": b'title = "t"\nseeds = [1]\n[fabric]\nkind = "shoal"\nnodes = 8\n[workload]\nkind = "incast"\n'
    b'fan_in = 3\nbytes = 900\n[picture]\nfile = "p.svg"\nx = "nodes"\ny = "fct.p99"\n',
    "parts.toml": b'title = "t"\ncurrency = "USD"\n[parts.NIC]\nprice = "410 USD"\npower = "3 W"\n',
}


class Late(BaseException):
    """An input takes too long; nothing that is thrown at catches it."""


class Stopped(Exception):
    """A run would begin here."""


def stop(*arguments, **options):
    raise Stopped


def mutated(draw: random.Random, raw: bytes) -> bytes:
    """Some bytes with a few changed, cut, doubled or replaced by what files of others hold."""
    out = bytearray(raw)
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(out) + 1)
        how = draw.randrange(6)
        if how == 0 and out:
            out[at % len(out)] ^= 1 << draw.randrange(8)
        elif how == 1:
            del out[at : at + draw.randint(1, 40)]
        elif how == 2:
            out[at:at] = out[at : at + draw.randint(1, 60)]
        elif how == 3:
            out[at:at] = draw.choice(WORDS).encode("utf-8", "surrogatepass")
        elif how == 4:
            out[at:at] = draw.choice(
                (b"[" * 500, b'"' * 9, b"\xff\xfe", b"\0", b"1" * 400, b"\n" * 9, b"-", b"1e999", b"{")
            )
        else:
            out = out[: draw.randrange(len(out) + 1)]
    return bytes(out)


class Fuzz:
    """Inputs of one process; `call` is the command line."""

    def __init__(self, home: Path):
        from weft.cli import main
        from weft.cli.reference import COMMANDS as every  # noqa: F401 - the module must load

        self.call, self.home = main, home
        os.chdir(home)
        for name, raw in CORPUS.items():
            (home / name).write_bytes(raw)
        self.make_result()
        self.flags: dict[tuple, list[str]] = {}
        often = [self.study, self.trace, self.csv, self.parts, self.result, self.checkpoint, self.wire, self.texts,
                 self.flags_only, self.chakra, self.packed, self.table, self.capture] * 5  # fmt: skip
        self.kinds = [self.command, self.shown, *often]  # commands take a hundred times as long as what they read

    def make_result(self):
        """A result and a checkpoint to be damaged."""
        import weft
        from weft.checkpoint import Checkpoint, describe_call
        from weft.workload.traces import Trace, write_parquet

        rack, some = weft.Shoal(nodes=8), weft.Poisson(load=0.5, flows=20, sizes="fixed:2KB")
        weft.run(rack, some, seed=0).save(self.home / "r")
        run = rack.prepare(some.draw(nodes=8, link=rack.link, seed=0), seed=0)
        run.advance(until=1_000_000)
        self.frozen = [(rack, run.demand, {name: a.copy() for name, a in run.freeze().items()})]
        from rooms import FLOWS, ONE

        for _, fabric in ONE:  # in which nothing has happened: nothing needs to be compiled
            flows = FLOWS[1].draw(nodes=fabric.nodes, link=fabric.link, seed=1)
            self.frozen.append((fabric, flows, fabric.prepare(flows, seed=1).freeze()))
        from weft import catalogue

        self.classes = [*(catalogue.fabric_class(name) for name in catalogue.fabrics()),
                        *catalogue.own_workloads().values()]  # fmt: skip
        weft.run(rack, some, seed=0).save(self.home / "s" / "runs" / "r")
        write_parquet(Trace(path="trace.csv").draw(nodes=8, link=10**11, seed=1), self.home / "t.parquet")
        self.ranks = [path.read_bytes() for path in sorted((ROOT / "examples/chakra").glob("*.et"))]
        self.columns = (self.home / "t.parquet").read_bytes()
        call = {**describe_call(rack, some, 0, None), "spent": {"wall_s": 0.0, "cpu_s": 0.0}}
        Checkpoint(self.home / "c.checkpoint").write(call, run.freeze(), None)
        self.whole = {path: path.read_bytes() for path in [*(self.home / "r").iterdir(), self.home / "c.checkpoint"]}

    # kinds of inputs: each returns what was tried, and the exit code

    def say(self, *tokens):
        """(what was tried, exit code, all that was printed)."""
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            try:
                code = self.call([str(token) for token in tokens])
            except Stopped:
                code = 0
        return tokens, code, out.getvalue()

    def command(self, draw):
        """Flags of a command, some of them its own."""
        command = draw.choice(COMMANDS)
        if command not in self.flags:
            text = self.say(*command, "--help")[2]
            found = {word.strip(",│|") for word in text.split() if word.startswith("--") and len(word) > 3}
            self.flags[command] = sorted(word for word in found if word.isascii() and word != "--help") or ["--json"]
        tokens = [*command]
        for _ in range(draw.randint(0, 5)):
            flag = draw.choice(self.flags[command])
            if flag not in ("--version", "--output", "--write-wiring"):
                tokens += [flag, draw.choice((*WORDS, *CORPUS))]
        return self.say(*tokens)

    def read(self, use, *told):
        """(what was tried, 0): the reader returns, or says a sentence."""
        from weft.errors import WeftError

        try:
            use()
        except WeftError as error:
            return told, 2, str(error)
        return told, 0, ""

    def study(self, draw):
        from weft.study import Study

        (self.home / "s.toml").write_bytes(mutated(draw, CORPUS["study.toml"]))
        return self.read(lambda: Study.load("s.toml"), "study")

    def trace(self, draw):
        from weft.workload.traces import Trace

        (self.home / "t.csv").write_bytes(mutated(draw, CORPUS[draw.choice(("trace.csv", "trace.cm"))]))
        return self.read(lambda: Trace(path="t.csv").draw(nodes=8, link=10**11, seed=1), "trace")

    def chakra(self, draw):
        from weft.workload.chakra import Chakra

        bad = draw.randrange(4)
        for rank, raw in enumerate(self.ranks):
            (self.home / f"k.{rank}.et").write_bytes(mutated(draw, raw) if rank == bad else raw)
        return self.read(lambda: Chakra(trace="k").draw(nodes=8, link=10**11, seed=1), "chakra")

    def packed(self, draw):
        """A trace as Parquet."""
        from weft.workload.traces import Trace

        (self.home / "t.parquet").write_bytes(mutated(draw, self.columns))
        return self.read(lambda: Trace(path="t.parquet").draw(nodes=8, link=10**11, seed=1), "parquet")

    def table(self, draw):
        """A schedule for gates, as JSON, and the table of a study."""
        from weft.comparison import compare
        from weft.rtl.designs import read_table

        (self.home / "x.json").write_bytes(mutated(draw, SLOTS))
        (self.home / "s" / "table.csv").write_bytes(mutated(draw, b"fingerprint,fabric.name\n0,shoal\n"))
        self.read(lambda: read_table("x.json", "leaf0"), "table of slots")
        return self.read(lambda: compare("s"), "table of a study")

    def capture(self, draw):
        from weft.wire.capture import reading

        def all_of(path):
            with reading(path, 1) as (_, packets):
                list(packets)

        (self.home / "x.pcap").write_bytes(mutated(draw, PCAP))
        return self.read(lambda: all_of("x.pcap"), "capture")

    def csv(self, draw):
        from weft.topology.cabling import Wiring
        from weft.topology.graph import from_edges
        from weft.workload.sizes import sizes

        name, use = draw.choice((("sizes.csv", sizes), ("edges.csv", from_edges), ("edges.csv", Wiring.load)))
        (self.home / "x.csv").write_bytes(mutated(draw, CORPUS[name]))
        return self.read(lambda: use("x.csv"), name)

    def parts(self, draw):
        from weft.models.parts import Catalogue

        (self.home / "p.toml").write_bytes(mutated(draw, CORPUS["parts.toml"]))
        return self.read(lambda: Catalogue.load("p.toml"), "parts")

    def damage(self, draw):
        """Damage one file of the result; the path, which is to be put back."""
        path = draw.choice([path for path in self.whole if path.parent.name == "r"])
        raw = self.whole[path]
        if path.suffix == ".json" and draw.random() < 0.7:
            at = inside = data = json.loads(raw)
            key = ""
            while isinstance(at, dict) and at and (draw.random() < 0.7 or at is data):
                inside, key = at, draw.choice(list(at))
                at = at[key]
            inside[key] = draw.choice((None, [], {}, "x", -1, 1.5, True, 10**400, [[]], {"kind": []}))
            raw = json.dumps(data).encode()
        else:
            raw = mutated(draw, raw)
        path.write_bytes(raw)
        return path

    def result(self, draw):
        from weft.catalogue import rebuild_call
        from weft.metrics import Result
        from weft.report.tables import run_table

        path = self.damage(draw)
        try:
            return self.read(
                lambda: (rebuild_call(Result.load("r").provenance), run_table(Result.load("r"))), path.name
            )
        finally:
            path.write_bytes(self.whole[path])

    def shown(self, draw):
        path = self.damage(draw)
        try:
            return self.say(draw.choice(("show", "rerun")), "r")
        finally:
            path.write_bytes(self.whole[path])

    def checkpoint(self, draw):
        """A damaged archive, or arrays that nobody's kernel made."""
        from weft.checkpoint import Checkpoint

        path = self.home / "c.checkpoint"
        path.write_bytes(mutated(draw, self.whole[path]))
        fabric, flows, frozen = draw.choice(self.frozen)
        arrays = dict(frozen)
        name = draw.choice(list(arrays))
        array = arrays[name].copy()
        if array.ndim == 0 or (array.size and draw.random() < 0.8):
            array.reshape(-1).view("u1")[draw.randrange(array.nbytes) :][:8] = draw.choice((0, 1, 0x7F, 0xFF))
        else:
            array = array[: draw.randrange(len(array) + 1)]
        arrays[name] = array
        try:
            self.read(lambda: Checkpoint(path).call(), "checkpoint")
            return self.read(lambda: fabric.thaw(flows, arrays, seed=0), fabric, name)
        finally:
            path.write_bytes(self.whole[path])

    def wire(self, draw):
        from weft.wire import eep, pfc, shoal

        raw = bytes(draw.randrange(256) for _ in range(draw.choice((0, 1, 8, 60, 64, 65, 1500))))
        decoders = [getattr(module, name) for module in (eep, pfc, shoal) for name in ("decode", "unpack")
                    if hasattr(module, name)]  # fmt: skip
        if not decoders:
            return self.say("wire", draw.choice(("shoal", "pfc")), "decode", raw.hex())
        return self.read(lambda: draw.choice(decoders)(raw), "wire")

    def flags_only(self, draw):
        """Fields of a description, read as the command line reads them."""
        from weft.parameters import build, parameters

        cls = draw.choice(self.classes)
        names = [one.name for one in parameters(cls)]
        given = {draw.choice(names): draw.choice((*WORDS, *CORPUS)) for _ in range(draw.randint(0, 4))}
        return self.read(lambda: build(cls, given), cls.__name__, given)

    def texts(self, draw):
        """The readers of quantities, plans of failures and sizes."""
        from weft.failures import entries
        from weft.units import parse_rate, parse_size, parse_time
        from weft.workload.sizes import sizes

        parts = (*WORDS, " ", "at", "until", "us", "link", "spine", ",", "%", ":", "=")
        text = "".join(draw.choice(parts) for _ in range(4))
        for use in (parse_rate, parse_size, parse_time, sizes, lambda text: list(entries(text))):
            told = self.read(lambda use=use: use(text), text)
        return told


SLOTS = b'{"switches": [{"name": "leaf0", "slots": [[1, 0, null, 2], [0, 1, 2, 3]]}]}'
PCAP = bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000") + 2 * (
    bytes.fromhex("01000000020000000e0000000e000000") + bytes(14)
)
COMMANDS = [("run", "shoal", "poisson"), ("run", "crossbar", "bernoulli"), ("run", "packet", "incast"),
            ("run", "tdma", "poisson"), ("run", "merchant", "alltoall"), ("cost", "shoal"), ("cost", "merchant"),
            ("run", "torus", "poisson"), ("run", "stardust", "bernoulli"), ("run", "ideal", "allreduce"),
            ("run", "shoal", "chakra"), ("compare",), ("stress",), ("groomer",), ("rtl", "emit", "shoal-switch"),
            ("schedule", "shoal"), ("wire", "shoal", "encode"), ("wire", "pfc", "encode"), ("figure",), ("show",),
            ("sweep",), ("fabrics",), ("workloads",), ("presets",), ("resume",), ("rerun",)]  # fmt: skip


def throw(fuzz: Fuzz, seed: int, number: int):
    """One input; returns what is wrong with what came of it, or None."""
    draw = random.Random(f"{seed}/{number}")
    kind = fuzz.kinds[number % len(fuzz.kinds)]
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    signal.alarm(WAIT)
    try:
        tried, code, printed = kind(draw)
    except Late:
        return kind.__name__, f"computed for more than {SECONDS} s, or took {WAIT}"
    except BaseException:
        return kind.__name__, traceback.format_exc(limit=-4)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
    if code not in (0, 1, 2):
        return tried, f"exit code {code}"
    if "Traceback" in printed:
        return tried, printed[-500:]
    if code == 2 and len(printed) > 20_000:
        return tried, f"{len(printed):,} characters of an error"
    return None


def _late(number, frame):
    raise Late


def main() -> int:
    """The exit code: 1 if anything was wrong."""
    asked = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    asked.add_argument("--inputs", type=int, default=2000)
    asked.add_argument("--seed", type=int, default=int(time.time()))
    asked.add_argument("--only", type=int)
    given = asked.parse_args()
    signal.signal(signal.SIGALRM, _late)
    signal.signal(signal.SIGPROF, _late)
    print(f"seed {given.seed}", flush=True)
    wrong, began, cpu = 0, time.monotonic(), time.process_time()
    with tempfile.TemporaryDirectory() as room:
        fuzz = Fuzz(Path(room))
        import weft.study  # noqa: F401 - to be patched

        places = ("weft.engine.loop.advance", "weft.experiment.run", "weft.study.run", "weft.papers.answer",
                  "weft.cli.groomer.run")  # fmt: skip
        with contextlib.ExitStack() as stopped:
            for place in places:
                stopped.enter_context(patch(place, stop))
            for number in range(given.inputs) if given.only is None else [given.only]:
                found = throw(fuzz, given.seed, number)
                if found is not None:
                    wrong += 1
                    print(f"--seed {given.seed} --only {number}: {found[0]!r}\n{found[1]}", flush=True)
        os.chdir("/")
    count = given.inputs if given.only is None else 1
    spent = time.process_time() - cpu
    took = f"{time.monotonic() - began:,.0f} s, {spent:,.0f} s of them computing"
    print(f"{count:,} inputs in {took}, {wrong} wrong", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
