"""Drawn tables of flows, some of which wait for others."""

from hypothesis import strategies as st

from weft.workload import Flows


@st.composite
def waiting(draw, nodes, most=14, largest=900, latest=2_000_000, delays=(0, 0, 1, 50_000, 700_001)):
    """A table of at most `most` flows among `nodes`: any acyclic graph, its rows in any order."""
    count = draw(st.integers(1, most))
    flow = st.tuples(
        st.integers(0, nodes - 1), st.integers(1, nodes - 1), st.integers(1, largest), st.integers(0, latest),
        st.sampled_from(delays),
    )  # fmt: skip
    rows = draw(st.lists(flow, min_size=count, max_size=count))
    order = draw(st.permutations(range(count)))  # a flow waits for some of those that come before it here
    after = [[] for _ in range(count)]
    for k, f in enumerate(order[1:], 1):
        after[f] = sorted(draw(st.sets(st.sampled_from(order[:k]), max_size=3)))
    lags = None
    if draw(st.booleans()):
        lags = [[draw(st.sampled_from(delays)) for _ in some] for some in after]
    src, gap, size, start, delay = zip(*rows, strict=True)
    dst = [(i + g) % nodes for i, g in zip(src, gap, strict=True)]
    return Flows.of(nodes=nodes, src=src, dst=dst, size=size, start=start, delay=delay, after=after, after_delay=lags)
