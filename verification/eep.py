"""EEP's two decoders on thousands of damaged streams: they must find the same, and make no frame up.

Streams of random, constant and empty-looking frames are cut, flipped, reordered and overwritten, then decoded in random
pieces and whole. Prints how often each fault was found.
"""

import random
from collections import Counter
from itertools import pairwise

from weft.fabrics.merchant import eep as eep_codec
from weft.wire import eep_reference
from weft.wire.eep import Frame
from weft.wire.ethernet import fcs

CASES = 5000


def frames(rng, most):
    """Frames and their links: bytes that are random, all zero, or all the same, which may look like headers."""
    for _ in range(rng.randrange(1, 20)):
        size = rng.randrange(5, most + 1) - 4
        body = rng.choice([rng.randbytes(size), bytes(size), bytes([rng.randrange(256)]) * size])
        yield rng.choice([3, rng.randrange(16)]), body + fcs(body)


def damaged(rng, parts):
    """The stream of EEP frames after some accidents."""
    if rng.random() < 0.3:
        rng.shuffle(parts)
    if rng.random() < 0.3:
        del parts[rng.randrange(len(parts))]
    stream = bytearray(b"".join(parts))
    for _ in range(rng.randrange(8)):
        at, size = rng.randrange(len(stream) + 1), rng.randrange(1, 90)
        how = rng.choice(["flip", "drop", "insert", "overwrite"])
        if how == "flip" and at < len(stream):
            stream[at] ^= 1 << rng.randrange(8)
        else:
            noise = b"" if how == "drop" else rng.randbytes(size)
            stream[at : at if how == "insert" else at + size] = noise
    return bytes(stream)


def decode(module, pieces, most):
    decoder, out = module.Decoder(most), []
    for piece in [*pieces, None]:
        found = decoder.end() if piece is None else decoder.add(piece)
        out += found if isinstance(found, list) else found.events()
    return out, decoder.skipped


def main():
    rng, seen = random.Random(1), Counter()
    for case in range(CASES):
        most = rng.choice([65, 128, 300, 1518])
        mux, sent = eep_reference.Multiplexer(), set()
        for link, frame in frames(rng, most):
            mux.put(link, frame, most)
            sent.add(frame)
        stream = damaged(rng, list(iter(mux.take, b"")))
        cuts = sorted(rng.randrange(len(stream) + 1) for _ in range(rng.randrange(6)))
        pieces = [stream[a:b] for a, b in pairwise([0, *cuts, len(stream)])]
        found = decode(eep_reference, pieces, most)
        assert found == decode(eep_codec, pieces, most) == decode(eep_codec, [stream], most), (case, most, stream.hex())
        for event in found[0]:
            if isinstance(event, Frame):
                assert not event.intact or event.data in sent, (case, stream.hex())
                seen["intact frames" if event.intact else "damaged frames"] += 1
            else:
                seen[event.kind.name.lower()] += 1
        seen["streams that lost framing"] += found[1] > 0
    print(f"{CASES:,} streams, both decoders alike, no frame made up")
    for what, count in seen.most_common():
        print(f"{count:8,}  {what}")


if __name__ == "__main__":
    main()
