"""`weft groomer`: frames through a traffic groomer, by EEP or IEEE 802.1ad, and how long they take."""

from typing import Annotated

from cyclopts import App, Parameter

from weft.cli import options
from weft.cli.flags import Flags, command, keyword
from weft.cli.options import RUNNING, print_json, say
from weft.fabrics.merchant.groomer import Frames, Groomer, run

SENTENCE = "Several ports onto one faster link and back, by EEP or IEEE 802.1ad: latency, buffers and jitter."
app = App(name="groomer", help=SENTENCE, help_format="markdown")
_GROOMER = Flags(Groomer, "groomer", "Groomer", order=1)
_FRAMES = Flags(Frames, "frames", "Frames", order=2)
_SEED = Parameter(help="of sizes, phases and gaps", metavar="INT", group=RUNNING)
_JSON = Parameter(
    help="print one JSON object on stdout, and nothing else", group=RUNNING, negative="", show_default=False
)


def call(*, seed, json, **given) -> int:
    """Run a groomer and print what came out."""
    groomer, frames = _GROOMER.build(given), _FRAMES.build(given)
    groomed = run(groomer, frames, options.seed(seed))
    found = {"frame": frames.frame, "load": frames.load, **groomed.summary()}
    if json:
        print_json(found)
    else:
        print("\n".join(lines(groomer, found)))
        if found["underruns"]:
            enough = f"{found['least_playout_ns']:g} ns, on a fast link overclocked as it is unless told otherwise"
            say(f"{found['underruns']:,} egress frames ran out of bytes; proved enough is a playout of {enough}")
    return 0


def lines(groomer, found):
    """What was measured, for a reader."""
    rate = f"{groomer.ports} x {groomer.link / 1e9:g} Gb/s onto {groomer.trunk / 1e9:g} Gb/s"
    faster = f", overclocked by {found['overclock_percent']:.4g} %" if found["overclock_percent"] else ""
    frames = f"{found['frames']:,} frames of {found['frame']} B, load {found['load']:g}"
    yield f"{groomer.protocol}, {rate}{faster}; {frames}"
    times = [f"{found[key]:,.1f}" for key in ("round_trip_ns", "round_trip_ns_min", "round_trip_ns_p99",
                                              "round_trip_ns_max", "jitter_ns")]  # fmt: skip
    yield "round trip  {} ns, least {}, p99 {}, most {}; same size and port within {} ns".format(*times)
    if len(found["by_size"]) > 1:
        for size, row in found["by_size"].items():
            yield f"  {size:>5} B   {row['round_trip_ns']:,.1f} ns, {row['frames']:,} frames"
    held = found["buffer_bytes"]
    yield (
        f"buffers     {held['ingress']:,} B a port before the fast link, {held['ingress_all']:,} B in all; "
        f"{held['egress']:,} B a port after"
    )
    yield f"fast link   {found['trunk_busy']:.1%} busy"
    if groomer.protocol == "eep":
        proved = "proved enough" if found["proved_safe"] else "not proved enough"
        yield f"cut-through {found['underruns']:,} underruns; egress waits {found['playout_ns']:g} ns, {proved}"


app.default(
    command(
        call,
        "groomer",
        SENTENCE,
        [
            *_GROOMER.parameters,
            *_FRAMES.parameters,
            keyword("seed", Annotated[str, _SEED], "0"),
            keyword("json", Annotated[bool, _JSON], False),
        ],
    )
)
