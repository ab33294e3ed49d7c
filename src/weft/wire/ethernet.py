"""Ethernet frames on the wire: what surrounds one, its check sequence, and the service tag of IEEE 802.1ad.

A frame here is what the check sequence covers and the check sequence itself: addresses, type, payload, FCS.
"""

from weft.errors import BadInput, require
from weft.wire.crc import CRC32
from weft.wire.format import Format

PREAMBLE = 8  # bytes before a frame, its start delimiter included (IEEE 802.3, §3.2)
GAP = 12  # bytes of silence after it (§4.4.2)
FCS = 4  # bytes of the check sequence
LEAST = 64  # bytes of the shortest frame, FCS included
STANDARD = 1518  # bytes of the longest frame with 1,500 bytes of payload
ADDRESSES = 12  # bytes of destination and source, after which a tag goes

# IEEE 802.1ad, §9.6. The standard draws it with the highest bit first, so its bytes go out last byte first.
TAG = Format("service_tag", (("vid", 12), ("dei", 1), ("pcp", 3), ("tpid", 16)))
SERVICE = 0x88A8  # tpid of a service tag


def fcs(body: bytes) -> bytes:
    """The check sequence of a frame without one."""
    return CRC32.compute(body).to_bytes(FCS, "little")


def intact(frame: bytes) -> bool:
    """Whether a frame ends with its check sequence."""
    return len(frame) > FCS and frame[-FCS:] == fcs(frame[:-FCS])


def wire_size(frame: int) -> int:
    """Bytes of a link's time that a frame of so many takes, preamble and gap included."""
    return PREAMBLE + frame + GAP


def tag(frame: bytes, vid: int, pcp: int = 0, dei: int = 0) -> bytes:
    """The frame with a service tag after its addresses, and a new check sequence."""
    _require_whole(frame, ADDRESSES + FCS)
    require(0 < vid < 4095, "vid", "from 1 to 4094", vid)
    mark = TAG.pack(vid=vid, dei=dei, pcp=pcp, tpid=SERVICE)[::-1]
    body = frame[:ADDRESSES] + mark + frame[ADDRESSES:-FCS]
    return body + fcs(body)


def untag(frame: bytes) -> tuple[dict[str, int], bytes]:
    """The outermost service tag of a frame, and the frame without it."""
    _require_whole(frame, ADDRESSES + TAG.size + FCS)
    found = TAG.unpack(frame[ADDRESSES : ADDRESSES + TAG.size][::-1])
    if found["tpid"] != SERVICE:
        raise BadInput(f"the tag of a frame must be of type {SERVICE:#06x}, not {found['tpid']:#06x}")
    body = frame[:ADDRESSES] + frame[ADDRESSES + TAG.size : -FCS]
    return found, body + fcs(body)


def _require_whole(frame, least):
    require(len(frame) >= least, "frame", f"at least {least} bytes", len(frame))
    if not intact(frame):
        raise BadInput(f"frame must end with its check sequence {fcs(frame[:-FCS]).hex()}, not {frame[-FCS:].hex()}")
