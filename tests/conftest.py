"""Drawn cases are the same in every run of the tests, `make verify` looks for others; and which tests are long.

`make quick` leaves out what is marked `long`: what simulates for more than some seconds, or compiles a large kernel.
Only `make verify`, by the profile `search`, asks what is marked `slow`.
"""

from pathlib import Path

import pytest
from hypothesis import Phase, settings

settings.register_profile("steady", derandomize=True, deadline=None)  # a busy machine is no failure
settings.register_profile("search", derandomize=False, print_blob=True)
settings.register_profile("once", derandomize=True, phases=(Phase.explicit, Phase.generate))
settings.load_profile("steady")

LONG = (
    "cli/test_hostile.py", "cli/test_packet.py", "cli/test_stress.py", "cli/test_torture.py", "cli/test_typed.py",
    "fabrics", "papers", "rtl", "test_cache.py", "test_cluster.py", "test_docs.py", "test_examples.py",
    "test_extending.py", "test_extremes.py", "test_follow.py", "test_laws.py", "test_links.py", "test_programs.py",
    "test_study.py",
)  # fmt: skip
QUICK = (  # though their folder is above
    "fabrics/crossbar/test_crossbar.py", "fabrics/packet/test_bounds.py", "fabrics/packet/test_settings.py",
    "fabrics/shoal/test_bounds.py", "fabrics/shoal/test_fabric.py", "fabrics/shoal/test_twins.py",
)  # fmt: skip


FIRST = ("cli/test_typed.py", "test_cluster.py")  # the longest tests, so that none is alone at the end


def pytest_collection_modifyitems(config, items):
    """Leave out what is slow, mark what is long, by file, and begin with the longest."""
    if settings.get_current_profile_name() != "search":
        slow = [item for item in items if item.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if not item.get_closest_marker("slow")]
    here = Path(__file__).parent
    for item in items:
        name = item.path.relative_to(here).as_posix() if item.path.is_relative_to(here) else ""
        if name.startswith(LONG) and name not in QUICK:
            item.add_marker(pytest.mark.long)
    items.sort(key=lambda item: not item.path.as_posix().endswith(FIRST))
