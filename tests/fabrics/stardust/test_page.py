"""docs/fabrics/stardust.md: its programs print what it says."""

import contextlib
import io
import re
from pathlib import Path

import pytest

from weft.errors import BadInput
from weft.wire import stardust as wire

PAGE = Path(__file__).parents[3] / "docs/fabrics/stardust.md"
PROGRAM = re.compile(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_programs_of_the_page_print_what_it_says():
    programs = PROGRAM.findall(PAGE.read_text(encoding="utf-8"))
    assert len(programs) == 2
    for program, said in programs:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(program, {})
        assert out.getvalue() == said


def test_control_messages_come_back_whole_and_a_flipped_bit_is_noticed():
    given = {"class": 1, "dst": 300, "port": 7, "src": 16_383, "bytes": 4096}
    data = wire.encode("request", **given)
    assert len(data) == wire.CONTROL == 12 and wire.HEADER == 10 and wire.REACHABILITY.size == 24
    found = wire.decode("request", data)
    assert found["good"] == 1 and {name: found[name] for name in given} == given
    for bit in range(8 * len(data)):
        damaged = (int.from_bytes(data, "big") ^ 1 << bit).to_bytes(len(data), "big")
        assert wire.decode("request", damaged)["good"] == 0
    with pytest.raises(BadInput, match=r"^a control message must be one of request, credit, reachability, not 'data'$"):
        wire.encode("data")
