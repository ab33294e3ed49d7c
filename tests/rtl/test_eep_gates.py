"""A groomer in gates sends the bytes of the codecs at the times of the model, on its trunk and on every port."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from weft.cli import main
from weft.errors import BadInput
from weft.fabrics.merchant.groomer import Frames, Groomer
from weft.papers.merchant.cutthrough import worst
from weft.rtl import gates
from weft.rtl.check_eep import check as check_frames
from weft.rtl.check_eep import compare, contents, drive, expect
from weft.rtl.designs import EepGates
from weft.rtl.groomer import Groomer as Gates
from weft.rtl.lockstep import Report
from weft.rtl.prove import decide
from weft.rtl.prove_eep import LEAST, NeverRunsOut, properties, small
from weft.rtl.simulate import Simulation
from weft.units import Gbps, ns
from weft.wire import eep_reference, ethernet

GROOMERS = [
    (Groomer(ports=3, link=1 * Gbps, trunk=5 * Gbps), 256),
    (Groomer(ports=2, link=2 * Gbps, trunk=4 * Gbps), 256),  # overclocked: a byte is 65 cycles on a port, 32 on it
    (Groomer(ports=2, link=1 * Gbps, trunk=3 * Gbps, protocol="802.1ad"), 4096),
]


def check(groomer, arrivals, buffer, seed=0, engine=None, design=None) -> Report:
    """As `weft rtl check eep` does, for frames that are given."""
    made = gates.groomer(groomer, buffer, looped=True) if design is None else design
    data = contents(arrivals, seed)
    model = expect(groomer, arrivals, data, made.late)
    last = max(int(stream[-1] >> 8) for stream in model.streams.values())
    seen, _ = drive(made, arrivals, data, last + 200, engine=engine)
    report = Report(design="eep", cells=sum(map(len, model.streams.values())))
    compare(report, seen, model)
    return report


@st.composite
def cases(draw):
    groomer, buffer = draw(st.sampled_from(GROOMERS))
    byte, arrivals = groomer.port_byte, []
    for _ in range(groomer.ports):
        sizes = draw(st.lists(st.sampled_from([64, 65, 127, 128, 129]) | st.integers(64, 300), min_size=1, max_size=4))
        at, starts = draw(st.integers(0, 100 * byte)), []
        for size in sizes:
            starts.append(at)
            at += ethernet.wire_size(size) * byte + draw(st.just(0) | st.integers(0, 200 * byte))
        arrivals.append((starts, sizes))
    return groomer, buffer, arrivals


@given(cases(), st.integers(0, 2**32))
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
def test_gates_send_the_bytes_of_the_model_in_the_cycles_of_the_model(case, seed):
    groomer, buffer, arrivals = case
    report = check(groomer, arrivals, buffer, seed)
    assert report.agree, report.first_difference


def test_both_engines_send_the_same_bytes():
    groomer, buffer = GROOMERS[0]
    report = check(groomer, [([0], [65]), ([7], [64]), ([3], [130])], buffer, engine="amaranth")
    assert report.agree, report.first_difference


def test_a_frame_that_runs_out_of_bytes_does_so_in_the_cycle_of_the_model():
    """The wait a tick too short, and the second segment as late as it can be."""
    groomer = Groomer(ports=3, link=1 * Gbps, trunk=5 * Gbps)
    tick = groomer.tick
    hasty = Groomer(ports=3, link=1 * Gbps, trunk=5 * Gbps, playout=int((groomer.least_playout - 1) * tick))
    assert hasty.playout_ticks == groomer.least_playout - 1
    arrivals = worst(hasty)
    assert expect(groomer, worst(groomer), contents(arrivals, 1), 1).underrun is None
    assert expect(hasty, arrivals, contents(arrivals, 1), 1).underrun is not None
    report = check(hasty, arrivals, 256)
    assert report.agree, report.first_difference
    report = check(hasty, arrivals, 256, design=gates.groomer(groomer, 256, looped=True))  # gates that wait long enough
    assert report.first_difference.signal in ("underrun", "byte 0 of tx[0]")


def test_a_wrong_header_is_named_by_cycle_signal_and_both_bytes(monkeypatch, tmp_path):
    from weft.rtl import groomer as module
    from weft.rtl.multiplexer import Multiplexer

    class Last(Multiplexer):
        """A multiplexer that numbers its links from the other end."""

        def link(self, p):
            return self.ports - 1 - p

    monkeypatch.setattr(module, "Multiplexer", Last)
    groomer = Groomer(ports=2, link=1 * Gbps, trunk=5 * Gbps)
    wrong = Gates(ports=2, port_byte=5, playout=groomer.playout_ticks, looped=True)
    frames = Frames(frame="64", load=1, frames=2)
    report = check_frames(groomer, frames, buffer=256, seed=1, design=wrong, vcd=str(tmp_path / "wave.vcd"))
    difference = report.first_difference
    assert difference.signal == "byte 0 of trunk" and difference.against == "model"
    assert difference.gates == "byte 0x03 in cycle 573" and difference.model == "byte 0x13 in cycle 573"
    assert "$enddefinitions" in (tmp_path / "wave.vcd").read_text()


def test_frames_that_were_damaged_are_dropped_where_they_are_stored_and_carried_where_they_are_not():
    frame = contents([([0], [80])], 3)[0][0]
    bad = frame[:30] + bytes([frame[30] ^ 4]) + frame[31:]
    for protocol, buffer, comes in (("802.1ad", 4096, [frame]), ("eep", 256, [bad, frame])):
        groomer = Groomer(ports=1, link=1 * Gbps, trunk=3 * Gbps, protocol=protocol)
        made = gates.groomer(groomer, buffer, looped=True)
        starts = [0, 400]
        seen, _ = drive(made, [(starts, [80, 80])], [[bad, frame]], 1500)
        out = bytes((seen["tx[0]"] & 255).astype("uint8"))
        assert out == b"".join(bytes([0x55] * 7 + [0xD5]) + one for one in comes)


def test_after_a_header_that_no_sender_makes_framing_begins_anew_with_silence():
    """The gates of one end alone, fed with EEP frames by hand."""
    frame = contents([([0], [90])], 5)[0][0]
    first, second = eep_reference.encode(frame, 1)
    made = gates.groomer(Groomer(ports=2, link=1 * Gbps, trunk=5 * Gbps), 256)
    pieces = [b"\x08" + first + second, first + second]  # a reserved bit is set: all is passed over until silence
    with Simulation(made) as simulation:
        rows, at, ins = simulation.stimulus(4000), 10, simulation.inputs.all
        for piece in pieces:
            for byte in piece:
                rows[at, ins["far_data"].at] = byte
                rows[at, ins["far_strobe"].at] = rows[at, ins["far_valid"].at] = 1
                at += 1
            at += 5
        out = simulation.run(rows)
        ports = simulation.outputs
        seen = out[ports.column(out, "tx_strobe") > 0]
        assert bytes(seen[:, ports.all["tx_data__1"].at].astype("uint8"))[8:] == frame
        assert ports.column(out, "lost")[-1] == 1 and not ports.column(out, "underrun").any()


def test_bytes_find_room_as_far_as_we_look_and_do_not_in_less():
    room = properties(EepGates())[1]
    assert decide(room.design(), 20) == ("holds to depth", 20)
    assert decide(room.mutant(), 20) == ("fails", 19)


@pytest.mark.long  # some ten seconds of processor time each
def test_a_frame_that_has_begun_never_runs_out_of_bytes_and_does_with_a_cycle_less():
    assert decide(NeverRunsOut(small(), room=False), 36) == ("holds to depth", 36)
    assert decide(NeverRunsOut(small(LEAST - 1), room=False), 36) == ("fails", 34)


def test_the_groomer_is_checked_from_the_command_line(capsys):
    given = ["--ports", "2", "--trunk", "5Gbps", "--frames", "3", "--frame", "64x2,150"]
    assert main(["rtl", "check", "eep", *given]) == 0
    out = capsys.readouterr().out
    assert out.startswith("eep-eep: ") and "gates agree with the model over" in out and "EEP frames" in out
    assert main(["rtl", "check", "eep", *given, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["agree"] is True and data["first_difference"] is None and data["cells"] > 500
    assert main(["rtl", "emit", "eep", "--ports", "2"]) == 0
    text = capsys.readouterr().out
    assert "module eep(" in text and "far_data" in text and text.count("module segmenter_") == 1


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"ports": 17}, "ports must be at most 16 in gates, not 17"),
        ({"buffer": 200}, "buffer must be a power of two from 128 to 65536 bytes, not 200"),
        ({"playout": 1 * ns, "protocol": "802.1ad"}, "playout must be left out with 802.1ad, .*"),
    ],
)
def test_sizes_that_fit_nothing_are_refused(given, says):
    with pytest.raises(BadInput, match=f"^{says}$"):
        EepGates(**given)


def test_a_buffer_too_small_for_the_frames_is_refused_with_what_they_need():
    groomer = Groomer(ports=2, link=1 * Gbps, trunk=3 * Gbps, protocol="802.1ad")
    says = r"^buffer must be at least the \d+ bytes that wait at a port of the model, not 256$"
    with pytest.raises(BadInput, match=says):
        check_frames(groomer, Frames(frame="1518", frames=1), buffer=256)
