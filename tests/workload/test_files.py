"""Files that a workload depends on are named with what is in them."""

import os
from hashlib import sha256
from pathlib import Path

import pytest

from weft.errors import BadInput
from weft.fabrics.packet import Packet
from weft.workload import Disaggregated, Incast, Poisson, Shorts, Trace, inputs
from weft.workload.files import PIPE


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "law.csv").write_bytes(b"# mine\n1,0\n9,1\n")
    (tmp_path / "trace.csv").write_bytes(b"0,0,1,100,0\n")


def test_a_workload_that_reads_nothing_has_no_inputs():
    assert inputs(Incast(fan_in=1)) == inputs(Poisson(load=1)) == inputs(Poisson(load=1, sizes="websearch")) == {}


def test_files_are_named_with_their_hash():
    law = sha256(b"# mine\n1,0\n9,1\n").hexdigest()
    assert inputs(Trace(path="trace.csv")) == {"trace.csv": sha256(b"0,0,1,100,0\n").hexdigest()}
    assert inputs(Poisson(load=1, sizes="law.csv")) == inputs(Shorts(shorts="law.csv")) == {"law.csv": law}


def test_every_text_that_names_a_file_is_an_input():
    law = sha256(b"# mine\n1,0\n9,1\n").hexdigest()
    assert inputs(Disaggregated(pages="law.csv", blocks="law.csv")) == {"law.csv": law}
    (Path.cwd() / "net.csv").write_text("h0,s0,10Gbps,1us\nh1,s0,10Gbps,1us\n")
    assert set(inputs(Packet(hosts=2, topology="net.csv"), Incast(fan_in=1))) == {"net.csv"}


def test_a_pipe_is_called_one():
    os.mkfifo("pipe")
    assert inputs(Trace(path="pipe")) == {"pipe": PIPE}


def test_a_file_that_is_not_there_gets_a_sentence():
    with pytest.raises(BadInput) as raised:
        inputs(Trace(path="no.csv"))
    assert str(raised.value) == (
        "what a description reads must be files that can be read: no.csv: no such file or directory"
    )
