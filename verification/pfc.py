"""Flow control frames as Wireshark reads them: every field of 300 drawn frames, by tshark (`apt install tshark`)."""

import json
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from weft.random import below_one, key, word
from weft.wire.pfc import Extended, Pause, Pfc

COUNT = 300
FIELDS = ("eth.dst", "eth.src", "eth.type", "macc.opcode", "macc.pause_time", "macc.cbfc.enbv",
          *(f"macc.cbfc.pause_time.c{c}" for c in range(8)))  # fmt: skip


def drawn(count):
    """Frames of all three kinds, with values from all over their ranges."""
    own, at = key(1, 0x706663), iter(range(10**6))

    def draw(n):
        return below_one(word(own, next(at)), n)

    for k in range(count):
        ends = {"dst": draw(2**31) << 16 | draw(2**16), "src": draw(2**31) << 16}
        if k % 3 == 0:
            yield Pause(time=draw(65536), **ends)
        elif k % 3 == 1:
            yield Pfc(times=tuple(draw(65536) if draw(2) else None for _ in range(8)), **ends)
        else:
            others = draw(65536) if draw(2) else None
            yield Extended(which=draw(2048), time=draw(65536), others=others, seq=draw(2**31), **ends)


def capture(path, frames):
    """Write a pcap of Ethernet frames with their FCS."""
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for k, frame in enumerate(frames):
            data = frame.encode(fcs=True)
            file.write(struct.pack("<IIII", k, 0, len(data), len(data)) + data)


def expected(frame):
    """What tshark should print of a frame, by field."""
    out = {"eth.dst": frame.dst.to_bytes(6, "big").hex(":"), "eth.src": frame.src.to_bytes(6, "big").hex(":")}
    out |= {"eth.type": "0x8808"}
    if isinstance(frame, Pause):
        return out | {"macc.opcode": "0x0001", "macc.pause_time": str(frame.time)}
    if isinstance(frame, Extended):
        return out | {"macc.opcode": "0xfffe"}
    vector = sum(1 << c for c, time in enumerate(frame.times) if time is not None)
    times = {f"macc.cbfc.pause_time.c{c}": str(time or 0) for c, time in enumerate(frame.times)}
    return out | {"macc.opcode": "0x0101", "macc.cbfc.enbv": f"0x{vector:04x}"} | times


def main() -> int:
    if shutil.which("tshark") is None:
        print("tshark must be installed for this check (apt install tshark)")
        return 1
    frames = list(drawn(COUNT))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "frames.pcap"
        capture(path, frames)
        fields = [word for name in FIELDS for word in ("-e", name)]
        command = ["tshark", "-r", path, "-o", "eth.fcs:Always", "-o", "eth.check_fcs:TRUE", "-T", "json", *fields]
        packets = json.loads(subprocess.run([*command, "-e", "eth.fcs.status"], capture_output=True, check=True).stdout)
    wrong = 0
    for k, (frame, packet) in enumerate(zip(frames, packets, strict=True)):
        seen = {name: values[0] for name, values in packet["_source"]["layers"].items()}
        status = seen.pop("eth.fcs.status")
        if status not in ("1", "Good") or any(seen.get(name) != value for name, value in expected(frame).items()):
            wrong += 1
            print(f"frame {k}: {frame}\n  ours   {expected(frame)}\n  tshark {seen}, FCS status {status}")
    pauses, pfcs, ours = (sum(isinstance(frame, kind) for frame in frames) for kind in (Pause, Pfc, Extended))
    print(f"{COUNT} frames ({pauses} PAUSE, {pfcs} PFC, {ours} extended), {wrong} that tshark reads otherwise")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
