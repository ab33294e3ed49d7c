"""Plans of failures: what they may say, what they come to, and what is refused."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import BadInput
from weft.failures import Outage, entries, outages, overlap, share_of
from weft.units import ms, us

RACK = {"node": (8,), "link": (8,), "leaf": (4,), "spine": (2,), "uplink": (4, 2)}


def read(plan, **options):
    return outages(plan, RACK, **options)


def test_a_plan_of_every_kind():
    assert read("node 3 at 1ms, link 7, leaf 0 until 4us, spine 1 at 2 ms until 5 ms, uplink 3.1") == (
        Outage("node", (3,), 1 * ms),
        Outage("link", (7,)),
        Outage("leaf", (0,), 0, 4 * us),
        Outage("spine", (1,), 2 * ms, 5 * ms),
        Outage("uplink", (3, 1)),
    )


def test_an_entry_may_name_several_things():
    assert [outage.which for outage in read("nodes 1 4 6 at 1us")] == [(1,), (4,), (6,)]
    assert {outage.at for outage in read("nodes 1 4 6 at 1us")} == {us}


def test_a_list_of_texts_is_one_plan():
    assert read(["node 3 at 1ms", "spine 0, leaf 1"]) == read("node 3 at 1ms, spine 0, leaf 1")


def test_an_empty_plan_fails_nothing():
    assert read("") == read([]) == read(" , ") == ()


def test_a_plane_and_a_direction_can_be_named():
    (one,) = read("plane 2 uplink 0.1 downward at 3us", planes=4)
    assert one == Outage("uplink", (0, 1), 3 * us, None, plane=2, way="downward")
    assert str(one) == "plane 2 uplink 0.1 downward at 3us"


plans = st.lists(
    st.builds(
        Outage,
        st.just("link"),
        st.tuples(st.integers(0, 7)),
        st.integers(0, 10**13),
        st.one_of(st.none(), st.integers(10**13 + 1, 10**15)),
        st.one_of(st.none(), st.integers(0, 3)),
        st.sampled_from([None, "upward", "downward"]),
    ),
    max_size=5,
    unique_by=lambda outage: outage.which,
)


@given(plans)
def test_an_outage_is_printed_as_a_plan_would_say_it(plan):
    assert outages(", ".join(map(str, plan)), RACK, planes=4) == tuple(plan)


@pytest.mark.parametrize(("share", "number"), [("0%", 0), ("50%", 4), ("100 %", 8), ("6.24%", 0), ("6.25%", 1)])
def test_a_share_is_rounded_to_the_nearest_whole_number(share, number):
    assert len(read(f"nodes {share}")) == number


@given(st.integers(0, 2**63 - 1))
def test_a_share_is_drawn_from_the_seed_without_repeats(seed):
    chosen = [outage.which for outage in read("uplinks 50% at 1us", seed=seed)]
    assert len(set(chosen)) == 4 and chosen == sorted(chosen)
    assert read("uplinks 50% at 1us", seed=seed) == read("uplinks 50% at 1us", seed=seed)


def test_another_seed_draws_another_share():
    assert len({read("nodes 50%", seed=seed) for seed in range(20)}) > 10


@given(st.integers(0, 2**63 - 1))
def test_a_share_leaves_out_what_the_plan_names_elsewhere(seed):
    whole = read("nodes 50% at 1us, node 3 until 2us, nodes 25% at 1us, node 5", seed=seed)
    assert len(whole) == len({outage.which for outage in whole}) == 8


def test_every_node_is_drawn_by_some_seed():
    assert {outage.which[0] for seed in range(60) for outage in read("nodes 12.5%", seed=seed)} == set(range(8))


def test_things_may_fail_again_once_they_are_back():
    assert len(read("node 3 until 1us, node 3 at 1us until 2us, node 3 at 5us")) == 3
    assert len(read("plane 0 spine 1, plane 1 spine 1", planes=2)) == 2
    assert len(read("link 3 upward, link 3 downward")) == 2


@given(*[st.integers(0, 9)] * 2, *[st.one_of(st.none(), st.integers(10, 19))] * 2)
def test_spans_overlap_if_some_moment_is_in_both(a, b, end_a, end_b):
    def moments(begin, end):
        return set(range(begin, 20 if end is None else end))

    assert overlap((a, end_a), (b, end_b)) == bool(moments(a, end_a) & moments(b, end_b))


def test_spans_that_touch_do_not_overlap():
    assert not overlap((0, 5), (5, None)) and not overlap((5, None), (0, 5))


def test_the_words_of_an_entry_are_kept_for_whoever_reads_them():
    (entry,) = entries("link edge0.1-agg0.0 at 10us until 2 ms")
    assert entry == ("link edge0.1-agg0.0 at 10us until 2 ms", ("link", "edge0.1-agg0.0"), 10 * us, 2 * ms)


@pytest.mark.parametrize(
    ("plan", "sentence"),
    [
        ("node 8", "a node must be from 0 to 7, not '8'"),
        ("node -1", "a node must be from 0 to 7, not '-1'"),
        ("node three", "a node must be from 0 to 7, not 'three'"),
        ("uplink 4.0", "the leaf of an uplink must be from 0 to 3, not '4'"),
        ("uplink 0.2", "the number of an uplink must be from 0 to 1, not '2'"),
        ("uplink 3", "an uplink must be named after its leaf and its own number, as in 0.1, not '3'"),
        ("plane 1 spine 0", "a plane must be from 0 to 0, not '1'"),
        ("plane 0 node 3", "a node must fail in every plane, not 'plane 0 node 3'"),
        ("leaf 3 upward", "what fails upward must be a link or uplink, not 'leaf 3 upward'"),
        ("spin 0", "what fails must be one of node, link, leaf, spine, uplink, not 'spin' (near it: spine, spines)"),
        ("rack 0", "what fails must be one of node, link, leaf, spine, uplink, not 'rack'"),
        ("plane 0", "what fails must be one of node, link, leaf, spine, uplink, not ''"),
        ("node at 1ms", "a failure must say which node, not 'node at 1ms'"),
        ("at 1ms", "a failure must begin with what fails, not 'at 1ms'"),
        ("node 3 at", "a failure must have one time after 'at', not 'node 3 at'"),
        ("node 3 at 1ms at 2ms", "a failure must have one time after 'at', not 'node 3 at 1ms at 2ms'"),
        ("node 3 at noon", "a time must look like 2750ps or 1.5us, not 'noon'"),
        ("node 3 at -1ms", "a failure must begin at 0 ps or later, not 'node 3 at -1ms'"),
        ("node 3 at 2ms until 1ms", "a failure must end after it begins, not 'node 3 at 2ms until 1ms'"),
        ("node 3 until 0ps", "a failure must end after it begins, not 'node 3 until 0ps'"),
        ("node 3 at 4611687s", "a failure must begin and end within 53 days, not 'node 3 at 4611687s'"),
        ("node 3 until 1e9s", "a failure must begin and end within 53 days, not 'node 3 until 1e9s'"),
        (f"node {'9' * 5000}", f"a node must be from 0 to 7, not '{'9' * 5000}'"),
        (f"nodes {'1' * 5000}%", f"a share of nodes must be a percentage from 0% to 100%, not '{'1' * 5000}%'"),
        ("leaves 101%", "a share of leaves must be a percentage from 0% to 100%, not '101%'"),
        ("nodes some%", "a share of nodes must be a percentage from 0% to 100%, not 'some%'"),
        ("node 1, nodes 100%", "'nodes 100%' must leave room for the rest of the plan, not take 8 of 7 left"),
        (
            "node 3 at 1ms until 3ms, node 3 at 2ms",
            "node 3 must be back before it fails again, not fail at 1 ms, come back at 3 ms, and fail at 2 ms",
        ),
        (
            "node 3 at 1ms, node 3",
            "node 3 must be back before it fails again, not fail at 0 ps, come back never, and fail at 1 ms",
        ),
        (
            "link 3, link 3 upward",
            "link 3 upward must be back before it fails again, not fail at 0 ps, come back never, and fail at 0 ps",
        ),
        (3, "a plan of failures must be a text or a list of texts, not 3"),
        ([3], "a plan of failures must be a text or a list of texts, not 3"),
    ],
)
def test_nonsense_is_refused_in_a_sentence(plan, sentence):
    with pytest.raises(BadInput) as error:
        read(plan)
    assert str(error.value) == str(BadInput(sentence))  # what is very long is cut


@given(st.text(alphabet="node link leafspuk0123.%,-atilm ", max_size=40))
def test_any_text_is_a_plan_or_is_refused_in_a_sentence(text):
    try:
        assert all(isinstance(outage, Outage) for outage in read(text))
    except BadInput as error:
        assert "\n" not in str(error)


THINGS = ("node 3", "link 5", "leaf 0", "spine 1", "uplink 0.1 upward", "nodes 50%")
spans = st.tuples(st.sampled_from(THINGS), st.integers(0, 10**15), st.none() | st.integers(1, 10**15))


@given(st.lists(spans, max_size=4), st.integers(0, 9))
def test_a_plan_that_is_printed_is_the_same_plan(entries, seed):
    counts = {"node": (8,), "link": (8,), "leaf": (4,), "spine": (2,), "uplink": (4, 2)}
    texts = [f"{what} at {at}ps" + ("" if span is None else f" until {at + span}ps") for what, at, span in entries]
    try:
        found = outages(texts, counts, seed=seed)
    except BadInput:
        return
    printed = ", ".join(map(str, found))
    assert outages(printed, counts, seed=seed + 1) == found  # all is named, so nothing is drawn any more


@given(st.integers(0, 400), st.decimals(0, 100, places=3))
def test_a_share_is_the_nearest_whole_number_and_half_goes_up(count, percent):
    exact = Fraction(str(percent)) * count / 100
    found = share_of(f"{percent}%", "nodes", count)
    assert abs(found - exact) <= Fraction(1, 2)
    if abs(found - exact) == Fraction(1, 2):
        assert found > exact


def test_a_list_of_things_may_have_commas():
    assert [entry[1:] for entry in entries("nodes 3,17 at 1ms, spine 0")] == [
        (("nodes", "3", "17"), 1 * ms, None), (("spine", "0"), 0, None),
    ]  # fmt: skip
    assert [entry.words for entry in entries("nodes 3, 17, 5, nodes 50%, uplink 0.1")] == [
        ("nodes", "3", "17", "5"), ("nodes", "50%"), ("uplink", "0.1"),
    ]  # fmt: skip
