"""Settings: the parameters of a transport, read from `presets.toml` by name.

`ndp` is the protocol as its authors describe it, `ndp@shoal-nsdi19` as Shoal's evaluation set it up, and
`ndp@shoal-nsdi19:initial_window=23,rto_min=2ms` the latter with two values changed. A network whose switches have
settings too derives its own class from `Settings` (`of=`); presets name both, and a network takes what it knows.
"""

import difflib
import tomllib
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import ClassVar, Literal, get_args

from weft.errors import BadInput, require
from weft.parameters import parameters
from weft.units import KB, Mbps, Rate, Size, Time, ms, param, s, show_time, us
from weft.workload.flows import LATEST

TRANSPORTS = ("tcp", "dctcp", "mptcp", "ndp", "dcqcn")
Routing = Literal["ecmp", "random", "permuted", "roundrobin", "single"]
Nic = Literal["fifo", "fair"]
ROUTINGS, NICS = get_args(Routing), get_args(Nic)
WIRE = 38  # preamble 8, Ethernet header 14, FCS 4, gap 12
LEAST = 84  # bytes a minimal frame of 64 occupies on the wire
MOST = 10**9  # of whatever is counted: packets, bytes, rounds


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a transport is set to. Packets are full-size ones; their size is the fabric's MTU."""

    transports: ClassVar[tuple[str, ...]] = TRANSPORTS  # that there are; a network may have one of its own

    transport: str = param("tcp", "protocol")
    header: int = param(
        52, "bytes of each packet that are no payload: IP 20, TCP 20, timestamps 12", origin="RFC 791, 9293 and 7323"
    )
    control: int = param(
        90,
        "bytes an ACK occupies on the wire, preamble and gap included",
        origin="RFC 791, 9293 and 7323: 52 B and Ethernet's 38",
    )
    routing: str = param(
        "ecmp",
        f"how packets choose among equal paths: {', '.join(ROUTINGS)}",
        origin="assumed: what datacenters use for TCP",
    )
    nic: str = param(
        "fifo",
        f"in which order a host sends the packets of its flows: {', '.join(NICS)} (round robin over flows)",
        origin="assumed: one queue a port",
    )
    initial_window: int = param(10, "segments sent at once when a flow starts", origin="RFC 6928 §2")
    threshold: int = param(
        0,
        "segments at which slow start ends at first; 0 is at a loss or a mark",
        origin="RFC 5681 §3.1: arbitrarily high",
    )
    max_window: int = param(1024, "segments that may be on their way", origin="assumed: no limit that matters")
    rto_min: Time = param(
        10 * ms, "least retransmission timeout", origin="assumed: datacenter practice; RFC 6298 §2.4 says 1 s"
    )
    rto_first: Time = param(
        10 * ms, "timeout before the first RTT is known", origin="assumed: as rto_min; RFC 6298 §2.1 says 1 s"
    )
    rto_max: Time = param(1 * s, "largest timeout", origin="assumed; RFC 6298 §2.5 says at least 60 s")
    ack_every: int = param(
        1, "segments an ACK may cover; 2 is the usual delayed ACK", origin="assumed; RFC 5681 §4.2 allows 2"
    )
    ack_delay: Time = param(
        500 * us, "longest an ACK is delayed", origin="RFC 5681 §4.2: at most 500 ms; this value is assumed"
    )
    sack: bool = param(False, "selective acknowledgements", origin="off: RFC 5681 and 6582 do without")
    blocks: int = param(
        3,
        "runs of segments that a selective acknowledgement names at most",
        origin="RFC 2018 §3: three beside timestamps",
    )
    limited: bool = param(True, "limited transmit (RFC 3042)", origin="RFC 3042")
    gain_shift: int = param(
        4, "the gain g of alpha is 2 to the power of minus this", origin="SIGCOMM '10 §4 and RFC 8257 §4.2: g = 1/16"
    )
    subflows: int = param(1, "subflows of an MPTCP flow", origin="one, but for MPTCP")
    coupled: bool = param(True, "windows of subflows grow together (MPTCP)", origin="RFC 6356 §3")
    reinject: bool = param(
        False,
        "send what a subflow that timed out has not delivered on the others (MPTCP)",
        origin="off: RFC 8684 §3.3.6 leaves it to the sender",
    )
    receive_window: int = param(
        0,
        "segments of a flow that may be beyond the first one missing (MPTCP); 0 is max_window for each subflow",
        origin="assumed: no limit that matters",
    )
    opportunistic: bool = param(
        False,
        "send again, on a subflow that could send, what holds the receive window up (MPTCP)",
        origin="off: NSDI '12 §4.2 has it for small receive windows",
    )
    penalise: bool = param(
        False,
        "halve the window of the subflow that held the receive window up (MPTCP)",
        origin="off: NSDI '12 §4.2 has it for small receive windows",
    )
    scoreboard: bool = param(
        True,
        "leave paths out for a while that fail twice as often as all together (NDP)",
        origin="NDP, SIGCOMM '17 §3.2.3; thresholds assumed",
    )
    cnp_gap: Time = param(
        50 * us, "least time between two CNPs of a flow", origin="assumed; remembered as N of DCQCN, SIGCOMM '15 §3.1"
    )
    alpha_gap: Time = param(
        55 * us, "time without CNP after which alpha decays", origin="DCQCN, SIGCOMM '15 §5.3: 55 us"
    )
    raise_gap: Time = param(55 * us, "period of the rate-increase timer", origin="DCQCN, SIGCOMM '15 §5.3: T = 55 us")
    raise_bytes: Size = param(
        10_000 * KB, "bytes after which the rate increases as well", origin="DCQCN, SIGCOMM '15 §5.3: B = 10 MB"
    )
    fast_rounds: int = param(5, "increases spent in fast recovery", origin="DCQCN, SIGCOMM '15 table 2: F = 5")
    rate_step: Rate = param(40 * Mbps, "additive increase", origin="DCQCN, SIGCOMM '15 §5.3: R_AI = 40 Mb/s")
    rate_leap: Rate = param(400 * Mbps, "hyper increase", origin="assumed: ten times R_AI; the paper gives none")
    rate_min: Rate = param(10 * Mbps, "least sending rate", origin="assumed")
    source: str = param("", "where the values come from")

    def __post_init__(self):
        require(self.transport in self.transports, "transport", f"one of {', '.join(self.transports)}", self.transport)
        require(self.routing in ROUTINGS, "routing", f"one of {', '.join(ROUTINGS)}", self.routing)
        require(self.nic in NICS, "nic", f"one of {', '.join(NICS)}", self.nic)
        for name in ("header", "control", "ack_delay", "rate_step", "rate_leap"):
            require(getattr(self, name) >= 0, name, "0 or more", getattr(self, name))
        for name in ("header", "control", "initial_window", "ack_every", "fast_rounds"):
            require(getattr(self, name) <= MOST, name, "at most 10^9", getattr(self, name))
        for name in ("ack_delay", "rto_min", "rto_first", "rto_max", "cnp_gap", "alpha_gap", "raise_gap"):
            require(getattr(self, name) <= LATEST, name, "at most 53 days", show_time(getattr(self, name)))
        for name in ("initial_window", "max_window", "ack_every", "subflows", "fast_rounds"):
            require(getattr(self, name) >= 1, name, "at least 1", getattr(self, name))
        require(0 <= self.threshold <= 1 << 16, "threshold", "from 0 to 65536 segments", self.threshold)
        within = 0 <= self.receive_window <= 1 << 20
        require(within, "receive_window", "from 0 to 1048576 segments", self.receive_window)
        if self.penalise and not self.opportunistic:
            raise BadInput("penalise must come with opportunistic, whose retransmissions it follows, not alone")
        require(1 <= self.blocks <= 4, "blocks", "from 1 to 4", self.blocks)
        require(self.max_window <= 1 << 16, "max_window", "at most 65536 segments", self.max_window)
        require(self.subflows <= 16, "subflows", "at most 16", self.subflows)
        require(0 <= self.gain_shift <= 16, "gain_shift", "from 0 to 16", self.gain_shift)
        positive = ("rto_min", "rto_first", "rto_max", "cnp_gap", "alpha_gap", "raise_gap", "raise_bytes", "rate_min")
        for name in positive:
            require(getattr(self, name) > 0, name, "more than 0", getattr(self, name))

    @property
    def ordered(self) -> bool:
        """Whether an MPTCP flow knows the order of all its segments; else it only counts them."""
        return self.transport == "mptcp" and bool(self.reinject or self.opportunistic or self.receive_window)

    @property
    def stream_window(self) -> int:
        """Segments of an MPTCP flow that may be beyond the first one missing."""
        return self.receive_window or self.subflows * self.max_window


@cache
def presets() -> dict[str, dict]:
    """The named sets as written: `ndp`, `ndp@shoal-nsdi19`, …; `source` is the set's, `from` that of each value."""
    return tomllib.loads((Path(__file__).parent / "presets.toml").read_text())


def origins(text: str, of: type = Settings) -> dict[str, str]:
    """Where each value of the settings called `text` comes from; a value that no source states is `assumed`."""
    name, _, rest = text.partition(":")
    settings(text, of)  # says what is wrong with the name
    found = {field.name: field.metadata.get("origin", "") for field in fields(of)}
    for key, where in (presets()[name.split("@")[0]].get("from", {}) | presets()[name].get("from", {})).items():
        if key in found:
            found[key] = where
    found |= {pair.partition("=")[0].strip(): "given" for pair in rest.split(",") if rest}
    return {key: where for key, where in found.items() if key not in ("transport", "source")}


def settings(text: str, of: type = Settings, **changes):
    """The settings called `text`, an `of`, with those of `changes` that are not None."""
    name, _, rest = text.partition(":")
    known = presets()
    if name not in known:
        near = difflib.get_close_matches(name, known, 3, 0.4)
        near += [k for k in known if k.split("@")[0] == name.split("@")[0] and k not in near]
        hint = f"near it are {', '.join(near)}" if near else f"there are {', '.join(known)}"
        raise BadInput(f"transport must be a known preset, not {name!r}: {hint}")
    taken = {parameter.name: parameter for parameter in parameters(of)}
    values = {key: value for key, value in {**known[name.split("@")[0]], **known[name]}.items() if key in taken}
    if rest:
        for pair in rest.split(","):
            key, equals, value = pair.partition("=")
            require(equals, f"a change to {name}", "name=value", pair)
            values[key.strip()] = value.strip()
    for key, value in values.items():
        if key not in taken:
            near = difflib.get_close_matches(key, taken, 2)
            hint = f" (near it: {', '.join(near)})" if near else ""
            raise BadInput(f"a setting of {name} must be one that transports have, not {key!r}{hint}")
        values[key] = taken[key].read(value)
    return replace(of(**values), **{k: v for k, v in changes.items() if v is not None})
