"""Flow sizes: the right mean, the same bytes for ever, and names that read back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft import random
from weft.errors import BadInput
from weft.units import GB, KB, TB
from weft.workload.flows import ENDLESS
from weft.workload.sizes import Empirical, Exponential, Fixed, Pareto, Uniform, names, sizes

WORDS = random.words(random.key(1, 0), 200_000)
LAWS = [Fixed(), Uniform(), Exponential(), Pareto(), Pareto(shape=2.5), *map(Empirical, names())]


def said(call, *args, **kwargs):
    with pytest.raises(BadInput) as raised:
        call(*args, **kwargs)
    return str(raised.value)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_the_mean_of_many_draws_is_the_effective_mean(law):
    """Within five standard errors, the deviation taken from a law cut where the draws are."""
    drawn = law.draw(WORDS).astype(float)
    error = drawn.std() / len(drawn) ** 0.5
    if law == Pareto():  # its deviation is in flows that 200,000 draws do not hold: compare what is below 1 MB
        law, drawn = Pareto(truncate=1000 * KB), np.minimum(drawn, 1e6)
        error = drawn.std() / len(drawn) ** 0.5
    assert abs(drawn.mean() - law.effective_mean()) <= 5 * error + 0.5  # half a byte for rounding


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_a_distribution_reads_back_from_what_it_prints(law):
    assert sizes(str(law)) == law


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1))
def test_every_size_is_at_least_one_byte_and_at_most_endless(words):
    for law in [*LAWS, Pareto(truncate=ENDLESS), Exponential(mean=ENDLESS // 64), Exponential(mean=1)]:
        drawn = law.draw(np.array(words, np.uint64))
        assert drawn.dtype == np.int64 and drawn.shape == (len(words),)
        assert (drawn >= 1).all() and (drawn <= ENDLESS).all()


@given(st.integers(1, 2**40), st.integers(0, 2**40), st.lists(st.integers(0, 2**64 - 1), min_size=1))
def test_uniform_sizes_stay_between_their_ends(low, more, words):
    drawn = Uniform(low, low + more).draw(np.array([0, 2**64 - 1, *words], np.uint64))
    assert drawn[0] == low and drawn[1] == low + more
    assert (drawn >= low).all() and (drawn <= low + more).all()


PINNED = {
    "fixed:size=20KB": [20000, 20000, 20000, 20000],
    "uniform:low=1KB,high=100KB": [49752, 94213, 73429, 76431],
    "exponential:mean=100KB": [70838, 6024, 31251, 27191],
    "pareto:shape=1.05,mean=100KB,truncate=10GB": [9349, 5043, 6413, 6169],
    "pareto:shape=2.5,mean=100KB,truncate=10GB": [79654, 61463, 67989, 66894],
    "datamining": [956, 1604658, 5322, 7396],
    "facebook-cache": [22916, 2635439, 1546954, 1691244],
    "facebook-hadoop": [646, 232274, 37216, 44742],
    "facebook-web": [3277, 331112, 24551, 37257],
    "htsim-web": [2000, 1000000, 10000, 10000],
    "websearch": [71332, 7967139, 1316064, 1619230],
}


def test_draws_are_pinned():
    words = random.words(random.key(7, 0), 4)
    assert {str(law): law.draw(words).tolist() for law in LAWS} == PINNED


def test_truncation_changes_only_what_is_beyond_it():
    free, cut = Pareto(truncate=10 * TB).draw(WORDS), Pareto(truncate=1000 * KB).draw(WORDS)
    assert (np.minimum(free, 1000 * KB) == cut).all()
    assert (free > cut).any()


def test_the_mean_after_truncation_is_the_integral_of_the_tail():
    """E[min(X, T)] = scale + integral of (scale / x) ** shape from scale to T, here by the midpoint rule."""
    law = Pareto(shape=1.3, mean=50 * KB, truncate=5000 * KB)
    edges = np.geomspace(law.scale, law.truncate, 200_001)
    middle = (edges[1:] + edges[:-1]) / 2
    integral = law.scale + ((law.scale / middle) ** law.shape * np.diff(edges)).sum()
    assert law.effective_mean() == pytest.approx(integral, rel=1e-8)


def test_the_default_pareto_says_what_its_truncation_costs():
    assert Pareto().scale == pytest.approx(100 * KB * 0.05 / 1.05)
    assert Pareto().notes == ("pareto sizes are truncated at 10 GB: their mean is 54.006 KB, the nominal one 100 KB",)


def test_one_run_in_five_of_a_million_flows_goes_past_the_default_truncation():
    """The sentence in Pareto's docstring."""
    law = Pareto()
    beyond = (law.scale / law.truncate) ** law.shape
    assert 1 - (1 - beyond) ** 10**6 == pytest.approx(0.2, abs=0.02)


def test_names_and_parameters_are_read():
    assert sizes("pareto") == Pareto(1.05, 100 * KB, 10 * GB)
    assert sizes("pareto:shape=1.1,mean=50KB") == Pareto(1.1, 50 * KB, 10 * GB)
    assert sizes("fixed:20KB") == Fixed(20 * KB)
    assert sizes("uniform:1KB,3KB") == Uniform(1 * KB, 3 * KB)
    assert sizes("websearch") == Empirical("websearch")
    assert sizes(Fixed(3)) == Fixed(3)


def test_names_that_are_none_get_a_sentence():
    everything = (
        "fixed, uniform, exponential, pareto, datamining, facebook-cache, facebook-hadoop, facebook-web, htsim-web, "
        "websearch"
    )
    assert said(sizes, "parteo") == f"sizes must be a csv file or one of {everything}, not 'parteo'"
    assert said(sizes, 5) == f"sizes must be a csv file or one of {everything}, not 5"
    assert said(sizes, "no.csv") == f"sizes must be a file of points or one of {everything}, not 'no.csv': no such file"
    assert said(sizes, "pareto:form=2") == "a parameter of pareto must be one of shape, mean, truncate, not 'form=2'"
    assert said(sizes, "pareto:shape=") == "shape must be a number, not ''"
    assert said(sizes, "pareto:shape=x") == "shape must be a number, not 'x'"
    assert said(sizes, "fixed:1,2") == "a parameter of fixed must be one of size, not '2'"
    assert said(sizes, "fixed:many") == "a size must look like 130KB, not 'many'"


def test_parameters_that_cannot_be_meant_get_a_sentence():
    assert said(Pareto, shape=1) == "shape must be above 1 and at most 100, not 1"
    assert said(Pareto, shape=float("nan")) == "shape must be above 1 and at most 100, not nan"
    assert said(Pareto, truncate=10) == "truncate must be at least the scale, 4761.9 bytes, not 10"
    assert said(Fixed, 0) == "size must be a size from 1 to 70368744177664 bytes, not 0"
    assert said(Uniform, 9, 5) == "high must be at least low, 9, not 5"


def test_points_are_joined_by_straight_lines(tmp_path):
    file = tmp_path / "law.csv"
    file.write_text("# Somebody, somewhere\nbytes,probability\n100,0.5\n100,0.5\n300,1\n")
    law = sizes(str(file))
    assert law.citation == "Somebody, somewhere"
    assert law.mean == 0.5 * 100 + 0.5 * 200
    u = np.array([1, 2**52, 3 * 2**51, 2**53], np.uint64) - np.uint64(1)  # unit: 2**-53, 1/2, 3/4, 1
    assert law.draw(u << np.uint64(11)).tolist() == [100, 100, 200, 300]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "law.csv must be a csv file with lines of bytes,probability, not 'empty'"),
        (b"# only words\n", "law.csv must be a csv file with lines of bytes,probability, not 'empty'"),
        (b"\xff\xfe", "law.csv must be a csv file of bytes and probability, not binary"),
        (b"1,0\n2,x\n", "law.csv, line 2: a point must be bytes,probability, not '2,x'"),
        (b"1,0\n2\n", "law.csv, line 2: a point must be bytes,probability, not '2'"),
        (b"5,0\n2,1\n", "law.csv, line 2: bytes must be from 5, the last point's, to 70368744177664, not 2.0"),
        (b"1,0.5\n2,0.4\n", "law.csv, line 2: probability must be from 0.5, the last point's, to 1, not 0.4"),
        (b"1,0.5\n2,nan\n", "law.csv, line 2: probability must be from 0.5, the last point's, to 1, not nan"),
        (b"1,0.5\n2,0.9\n", "law.csv: the last probability must be 1, not 0.9"),
    ],
)
def test_a_file_that_is_no_distribution_gets_a_sentence(tmp_path, monkeypatch, content, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "law.csv").write_bytes(content)
    assert said(sizes, "law.csv") == message


def test_every_distribution_that_comes_with_weft_says_where_it_is_from():
    assert set(names()) == {
        "websearch", "datamining", "facebook-web", "facebook-cache", "facebook-hadoop", "htsim-web",
    }  # fmt: skip
    for name in names():
        assert "et al." in Empirical(name).citation and "taken as published with" in Empirical(name).citation


@pytest.mark.parametrize(
    ("name", "printed"),
    [("facebook-web", 68936.79), ("facebook-cache", 718204.9), ("facebook-hadoop", 194330.9)],
)
def test_the_facebook_points_have_the_mean_that_their_source_prints(name, printed):
    """Homa's files begin with the mean of steps, each flow as large as the upper point; ours are lines, and smaller."""
    law = Empirical(name)
    assert (law.size * np.diff(law.probability, prepend=0)).sum() == pytest.approx(printed, rel=2e-6)
    assert law.mean < printed


def test_a_file_with_a_byte_order_mark_keeps_its_citation_and_points(tmp_path):
    path = tmp_path / "cdf.csv"
    path.write_bytes("\ufeff# Somebody, 2020\n1000,0.5\r\n2000,1\r\n".encode())
    law = sizes(str(path))
    assert law.citation == "Somebody, 2020"
    assert (law.size.tolist(), law.probability.tolist()) == ([1000.0, 2000.0], [0.5, 1.0])
