import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import BadInput
from weft.models import fpga, tables
from weft.models.fpga import Design, memory_of, most_ports, naive_ports
from weft.models.parts import Catalogue
from weft.prototypes import fpga as prototype
from weft.units import Gbps

DEVICES = Catalogue.named("fpga-2019").parts
quads = st.integers(1, 64).map(lambda n: 4 * n)


def test_eq_2_adds_up_by_hand():
    n, w, d = 8, 256, 64
    assert Design(design="smislip", ports=n, rate=10 * Gbps).memory_bits == n * (d * n * w + 2 * d * n * 9 + d * n * n)


@given(quads)
def test_gcq_takes_four_times_the_memory_for_twice_the_ports(ports):
    one, two = (Design(design="gcq", ports=n).memory_bits for n in (ports, 2 * ports))
    assert two == pytest.approx(4 * one)


@given(quads, st.sampled_from(fpga.DESIGNS))
def test_memory_grows_with_ports_width_and_depth(ports, design):
    base = Design(design=design, ports=ports, width=256)
    for more in ({"ports": ports + 4}, {"width": 257}, {"depth": 65}):
        assert Design(**{"design": design, "ports": ports, "width": 256} | more).memory_bits > base.memory_bits


@given(quads, st.sampled_from([10, 25, 50, 100]))
def test_sharing_a_memory_among_queues_costs_only_addresses_and_indicators(ports, rate):
    shared, plain = (Design(design=d, ports=ports, rate=rate * Gbps) for d in ("smislip", "islip"))
    assert shared.memory["shared memory"] == plain.memory["queues"]
    assert shared.memory_bits > plain.memory_bits


@given(st.sampled_from(["smislip", "gcq"]), quads, st.sampled_from(sorted(DEVICES)), st.sampled_from(sorted(DEVICES)))
def test_what_fits_a_device_fits_a_larger_one(design, ports, a, b):
    small, large = sorted((DEVICES[a], DEVICES[b]), key=memory_of)
    built = Design(design=design, ports=ports)
    assert not built.fits(small) or built.fits(large)


@pytest.mark.parametrize("design", fpga.DESIGNS)
def test_the_most_ports_fit_and_four_more_do_not(design):
    device = DEVICES["XCVU9P"]
    most = most_ports(design, 25 * Gbps, device)
    assert Design(design=design, ports=most, rate=25 * Gbps).fits(device)
    assert not Design(design=design, ports=most + 4, rate=25 * Gbps).fits(device)


def test_every_design_that_was_implemented_is_expected_to_fit():
    device = DEVICES["XCVU9P"]
    for row in tables.printed("fpga")["IV"]["row"]:
        if row["printed"] == "ok":
            design, ports, rate = row["name"].split(", ")
            assert Design(design=design, ports=int(ports.split()[0]), rate=int(rate.split()[0]) * Gbps).fits(device)


def test_the_first_designs_to_fail_for_memory_are_expected_to_fail():
    for design in ("smislip", "gcq"):
        assert not Design(design=design, ports=64, rate=50 * Gbps).fits(DEVICES["XCVU9P"])


def test_the_fitted_crossing_is_the_least_squares_of_the_measured_table():
    slow, rest = [], []
    for row in tables.printed("fpga")["VI"]["row"]:
        name = row["name"].split(", ")
        if name[0] == "gcq" and len(name) == 3 and name[1].endswith("ports") and "printed" in row:
            built = Design(design="gcq", ports=int(name[1].split()[0]), width=int(name[2].split()[0]))
            period = 1e9 / built.measured_clock
            slow.append(period)
            rest.append(float(row["printed"]) - period / 4 * (prototype.MEMORY_CYCLES + built.ports / 4))
    best = np.linalg.lstsq(np.array(slow)[:, None], np.array(rest), rcond=None)[0][0]
    assert len(slow) == 11
    assert best == pytest.approx(prototype.CROSSING_CYCLES, abs=5e-4)


def test_the_fitted_cycles_of_the_memory_are_the_best_whole_number():
    def error(cycles):
        total = 0
        for row in tables.printed("fpga")["VI"]["row"]:
            name = row["name"].split(", ")
            if name[0] == "smislip" and "printed" in row:
                built = Design(ports=int(name[1].split()[0]), width=int(name[2].split()[0]))
                period = 1e9 / built.measured_clock
                total += (period * (cycles + np.log2(built.ports)) / float(row["printed"]) - 1) ** 2
        return total

    assert min(range(1, 8), key=error) == prototype.MEMORY_CYCLES


def test_latency_falls_with_the_clock_and_is_unknown_for_islip():
    assert Design(ports=16).latency_ns(80e6) == pytest.approx(Design(ports=16).latency_ns(40e6) / 2)
    assert Design(design="islip").latency_ns() is None


def test_many_port_counts_are_answered_at_once():
    ports = np.arange(4, 4004, 4)
    for design in fpga.DESIGNS:
        many = Design(design=design, ports=ports)
        one_by_one = [Design(design=design, ports=int(n)).memory_bits for n in ports[::100]]
        assert many.memory_bits[::100].tolist() == one_by_one


def test_naive_queues_stop_at_23_and_46_ports():
    assert naive_ports(DEVICES["XCVU9P"]) == {"bram": 23, "lutram": 46}


@pytest.mark.parametrize(
    "given_, message",
    [
        ({"design": "banyan"}, "design must be one of islip, smislip, gcq, not 'banyan'"),
        ({"ports": 1}, "ports must be at least 2, not 1"),
        ({"design": "gcq", "ports": 66}, "ports must be a multiple of speedup 4 for gcq, nearest 64 or 68, not 66"),
        ({"fifo_factor": 0.5}, "fifo_factor must be at least 1, not 0.5"),
        ({"depth": 0}, "depth must be at least 1, not 0"),
    ],
)
def test_a_design_that_cannot_be_built_gets_a_sentence(given_, message):
    with pytest.raises(BadInput) as error:
        Design(**given_)
    assert str(error.value) == message
