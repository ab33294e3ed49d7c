"""`weft groomer` as it is typed: the round trip of both protocols, and what cannot be groomed."""

import json

import pytest

FLAGS = ("--link", "10Gbps", "--trunk", "40Gbps", "--load", "1", "--frames", "50")


@pytest.mark.parametrize("words", [("groomer",), ("run", "groomer")])
@pytest.mark.parametrize(("protocol", "round_trip"), [("eep", 728.0), ("802.1ad", 13281.6)])
def test_the_round_trip_is_reported(weft, words, protocol, round_trip):
    said = weft(*words, "--protocol", protocol, "--frame", 1500, "--json")
    found = json.loads(said.out)
    assert (said.code, said.err, found["protocol"], found["frame"]) == (0, "", protocol, "1500")
    assert found["round_trip_ns"] == round_trip and found["jitter_ns"] == 0 and found["frames"] == 400


def test_a_reader_is_told_of_a_mix(weft):
    said = weft("groomer", *FLAGS, "--frame", "64x7,594x4,1518")
    lines = said.out.splitlines()
    assert (said.code, said.err) == (0, "")
    assert lines[0] == (
        "eep, 4 x 10 Gb/s onto 40 Gb/s, overclocked by 1.562 %; 200 frames of 64x7,594x4,1518 B, load 1"
    )
    assert [line.split()[:2] for line in lines[2:5]] == [["64", "B"], ["594", "B"], ["1518", "B"]]
    assert lines[-1] == "cut-through 0 underruns; egress waits 32 ns, proved enough"


def test_a_reader_is_told_of_underruns(weft):
    said = weft("groomer", *FLAGS, "--frame", "1518", "--playout", "0ns")
    assert said.code == 0 and said.out.splitlines()[-1].endswith("egress waits 0 ns, not proved enough")
    count = json.loads(weft("groomer", *FLAGS, "--frame", "1518", "--playout", "0ns", "--json").out)["underruns"]
    assert count > 0
    assert said.err == (
        f"{count} egress frames ran out of bytes; proved enough is a playout of 32 ns, on a fast link overclocked as "
        "it is unless told otherwise\n"
    )


def test_the_same_seed_gives_the_same_numbers(weft):
    one, same, other = (weft("groomer", *FLAGS, "--seed", seed, "--json").out for seed in (1, 1, 2))
    assert one == same != other


@pytest.mark.parametrize(
    ("tokens", "sentence"),
    [
        (("--frame", "63"), "frame must be from 64 to 9,018 bytes, not 63"),
        (("--protocol", "sonet"), "protocol must be one of eep, 802.1ad, not 'sonet'"),
        (("--ports", "17"), "ports must be from 1 to 16 with eep, not 17"),
        (("--seed", "-1"), "seed must be from 0 to 2^63 - 1, not -1"),
        (("--load", "much"), "load must be a number, not 'much'"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(weft, tokens, sentence):
    said = weft("groomer", *tokens)
    assert said.code == 2 and said.out == ""
    assert said.err == f"weft groomer: {sentence}\n"
