"""`weft rtl`: the designs as hardware: listed, written as Verilog, checked against the models, measured, proved."""

import inspect
from typing import Annotated

from cyclopts import App, Parameter

from weft.cli import options
from weft.cli.flags import Flags, command, keyword
from weft.cli.listing import as_data, as_text, summary
from weft.cli.options import print_json, say
from weft.errors import BadInput, require

HELP = "Gates: the designs as hardware, checked cycle for cycle against the models."
VERBS = {
    "list": "List the designs, or the parameters of one.",
    "emit": "Write a design as Verilog.",
    "check": "Drive gates and models with the same cells, and name the first difference.",
    "synth": "Count a design's LUTs, registers and memory on a target, and route it where an open tool can.",
    "prove": "Prove a design's invariants by model checking, and see a mutant of each fail.",
}


def make(tokens) -> App:
    """The command, with the designs of the verb that the tokens ask for."""
    app = App(name="rtl", help=HELP, help_format="markdown")
    for verb, sentence in VERBS.items():
        if verb == "list":
            app.command(list_designs, name="list")
        elif not tokens or tokens[:1] == [verb]:
            app.command(_verb(verb, sentence))
        else:
            app.command(App(name=verb, help=sentence))
    return app


def _verb(verb, sentence) -> App:
    from weft.rtl.designs import DESIGNS, DRIVES, PROVED

    app = App(name=verb, help=sentence, help_format="markdown")
    fit = {"check": DRIVES, "prove": PROVED}.get(verb, DESIGNS)
    for name, cls in DESIGNS.items():
        if name in fit:
            app.command(MAKERS[verb](name, cls), name=name)
    return app


def _json():
    return keyword(
        "json", Annotated[bool, Parameter(negative="", help="print one JSON object", show_default=False)], False
    )


def list_designs(name: str | None = None, *, json: Annotated[bool, Parameter(negative="")] = False):
    """List the designs, or the parameters of one.

    Parameters
    ----------
    name
        The design to say everything about.
    json
        Print JSON.
    """
    from weft.rtl.designs import DESIGNS, DRIVES, PROVED

    if name is not None and name not in DESIGNS:
        raise BadInput(f"a design must be one of {', '.join(DESIGNS)}, not {name!r}")
    data = [
        as_data(known, cls) | {"check": known in DRIVES, "prove": known in PROVED}
        for known, cls in DESIGNS.items()
        if name in (None, known)
    ]
    if json:
        print_json({"designs": data})
    elif name is not None:
        print(as_text(data[0]))
    else:
        wide = max(map(len, DESIGNS))
        print("\n".join(f"{known:<{wide}}  {summary(cls)}" for known, cls in DESIGNS.items()))
    return 0


def _emit(name, cls):
    flags = Flags(cls, name, "Design", {"json", "output"})

    def call(*, json, output, **given):
        from weft.files import replaced
        from weft.rtl import tools

        design = flags.build(given)
        text = tools.verilog(design.component(), name.replace("-", "_"))
        if output is not None:
            with replaced(output) as fresh:
                fresh.write_text(text)
            say(f"written to {output}")
        if json:
            print_json({"design": name, "parameters": given_of(design), "lines": text.count("\n"), "verilog": text})
        elif output is None:
            print(text, end="")
        return 0

    where = Parameter(name=("--output", "-o"), metavar="FILE", help="write it into this file")
    return command(
        call, name, inspect.getdoc(cls), [*flags.parameters, keyword("output", Annotated[str | None, where]), _json()]
    )


def given_of(design) -> dict:
    """The parameters of a design as plain data."""
    from dataclasses import asdict

    return asdict(design)


def _check(name, cls):
    from weft.rtl import tools
    from weft.rtl.designs import DRIVES
    from weft.rtl.simulate import ENGINES

    own = {"json", "seed", "vcd", "engine"}
    flags = Flags(cls, name, "Design", own, order=1)
    drive = Flags(DRIVES[name], name, "Drive", {*own, *flags.names}, order=2)

    def call(*, seed, vcd, engine, json, **given):
        require(engine is None or engine in ENGINES, "engine", f"one of {', '.join(ENGINES)}", engine)
        design, driven = flags.build(given), drive.build(given)
        tools.amaranth()
        if engine is None and (lacking := tools.lacking()):
            say(f"{lacking} is missing: Amaranth's own simulator serves, some thousand times slower")
        report = driven.check(design, seed=options.seed(seed), vcd=vcd, engine=engine)
        if json:
            print_json(report.data())
        else:
            print(told(report))
        return 0 if report.agree else 1

    def about(help, metavar):
        return Parameter(help=help, metavar=metavar)

    return command(
        call, name, inspect.getdoc(cls),
        [
            *flags.parameters, *drive.parameters,
            keyword("seed", Annotated[str, about("of everything random", "INT")], "0"),
            keyword("vcd", Annotated[str | None, about("write the waveform around the first difference", "FILE")]),
            keyword("engine", Annotated[str | None, about("verilator or amaranth; the first unless missing", "NAME")]),
            _json(),
        ],
    )  # fmt: skip


def told(report) -> str:
    """A report for a reader."""
    slot, cell = report.units
    sides = " and ".join(f"the {side} over {slots:,} {slot}s" for side, slots in report.compared_with.items())
    head = (
        f"{report.design}: {report.cycles:,} cycles, {report.slots:,} {slot}s, {report.cells:,} {cell}s; "
        f"{report.cycles_per_s:,.0f} cycles/s in {report.engine}, built in {report.build_s:.1f} s"
    )
    if report.note is not None:
        head = f"{head}\n{report.note}"
    if report.agree:
        return f"{head}\ngates agree with {sides}"
    d = report.first_difference
    wave = f"\nthe waveform around it is in {report.vcd}" if report.vcd else ""
    return (
        f"{head}\ngates differ from the {d.against} first in cycle {d.cycle:,} ({slot} {d.slot:,}): {d.signal} is "
        f"{d.gates}, not {d.model}{wave}"
    )


def _synth(name, cls):
    flags = Flags(cls, name, "Design", {"json", "target", "route"})

    def call(*, target, route, json, **given):
        from weft.rtl import synth

        require(target in synth.TARGETS, "target", f"one of {', '.join(synth.TARGETS)}", target)
        cost = synth.synthesise(name, flags.build(given).component(), target, route=route)
        if json:
            print_json(cost.data())
        else:
            clock = "no open tool times it" if cost.fmax_mhz is None else f"{cost.fmax_mhz:g} MHz routed"
            print(
                f"{name} on {target}: {cost.lut:,} LUTs, {cost.ff:,} registers, {cost.lutram:,} LUTs of memory, "
                f"{cost.brams:g} blocks of 36 kb for {cost.ram_bits:,} bits; {clock} ({cost.tool})"
            )
        return 0

    target = Parameter(help="xcup, xc5v, cyclonev or ecp5", metavar="NAME")
    route = Parameter(help="place and route, on ecp5", negative="--no-route", show_default=False)
    return command(
        call, name, inspect.getdoc(cls),
        [
            *flags.parameters, keyword("target", Annotated[str, target], "xcup"),
            keyword("route", Annotated[bool, route], True), _json(),
        ],
    )  # fmt: skip


def _prove(name, cls):
    flags = Flags(cls, name, "Design", {"json"})

    def call(*, json, **given):
        from weft.rtl import tools

        tools.amaranth()
        from weft.rtl.properties import PROPERTIES
        from weft.rtl.prove import prove

        verdicts = prove(PROPERTIES[name](flags.build(given)))
        if json:
            print_json({"design": name, "properties": [vars(verdict) for verdict in verdicts]})
        else:
            for verdict in verdicts:
                depth = "" if verdict.depth is None else f" {verdict.depth}"
                mutant = "a mutant fails" if verdict.mutant_failed else "BUT ITS MUTANT DOES NOT FAIL"
                print(f"{verdict.result}{depth}: {verdict.name}; {mutant}")
        return 0 if all(verdict.good for verdict in verdicts) else 1

    return command(call, name, inspect.getdoc(cls), [*flags.parameters, _json()])


MAKERS = {"emit": _emit, "check": _check, "synth": _synth, "prove": _prove}
