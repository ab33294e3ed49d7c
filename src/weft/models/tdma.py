"""What TDMA over Ethernet takes from the links and asks of its controller (EuroSys '12, §3 to §6).

Times may be arrays; then so is every answer.
"""

from dataclasses import dataclass

import numpy as np

from weft.errors import require
from weft.models import tables
from weft.models.limits import within
from weft.models.parts import Bill, Catalogue
from weft.units import GB, KB, Gbps, Mbps, Rate, Size, Time, ms, ns, param, s, us
from weft.wire import pfc
from weft.wire.pfc import CLASSES, FRAME, LONGEST_QUANTA, QUANTUM_BITS

CATALOGUE = "tdma-2012"
LONGEST = 10**15  # ps: a slot of a thousand seconds is a typing error
SEGMENT = 9000  # bytes: not printed, fitted to the 8 ms of §6.4


@dataclass(frozen=True, kw_only=True)
class Slots:
    """Slots with a guard between them, started and ended by pause frames to every host."""

    slot: Time = param(300 * us, "time in which a host may send")
    guard: Time = param(15 * us, "silence that keeps slots apart")
    inside: bool = param(False, "whether the guard is part of the slot; the paper does not say")
    link: Rate = param(10 * Gbps, "rate of a host's link")
    frames: int = param(2, "pause frames to a host in every slot")
    frame: Size = param(FRAME, "bytes of a pause frame")

    def __post_init__(self):
        within("slot", self.slot, 1, LONGEST, " ps")
        within("guard", self.guard, 0, LONGEST, " ps")
        inside = np.all(np.asarray(self.guard) < self.slot)
        require(inside or not self.inside, "guard", "shorter than the slot it is inside", self.guard)
        within("link", self.link, 1, 10**15, " b/s")
        within("frames", self.frames, 0)
        within("frame", self.frame, 1, unit=" B")

    @property
    def cycle(self) -> int:
        """Time from one slot to the next."""
        return self.slot if self.inside else self.slot + self.guard

    @property
    def efficiency(self) -> float:
        """Share of the time in which a host may send."""
        return (self.cycle - self.guard) / self.cycle

    @property
    def block(self) -> float:
        """Bytes that fit a slot (§6.3)."""
        return self.efficiency * self.cycle * self.link / 8 / s

    @property
    def control_rate(self) -> float:
        """Pause frames to one host, in b/s (§6.5)."""
        return self.frames * self.frame * 8 * s / self.cycle

    @property
    def control_overhead(self) -> float:
        """Share of the link that they cost: the half that falls into the guard costs nothing (§6.5)."""
        return self.control_rate / 2 / self.link

    def wait(self, hosts):
        """Longest time from one slot of a pair to its next, when every host faces every other in turn."""
        within("hosts", hosts, 2)
        return (np.asarray(hosts, float) - 1) * self.cycle

    def all_to_all(self, hosts=24, size: Size = 10 * GB, pods=1) -> dict:
        """Time for `size` bytes from every host to every other, in ps: on ideal links and in slots (§6.1).

        With several pods the one uplink of each decides (§6.1.2).
        """
        if pods == 1:
            transfers = hosts - 1
        else:
            transfers = hosts // pods * (hosts - hosts // pods)
        ideal = transfers * size * 8 * s / self.link
        return {"ideal": ideal, "tdma": ideal / self.efficiency}


def slot_for(efficiency, guard: Time = 15 * us, inside: bool = False):
    """The shortest slot with at least `efficiency`, in ps."""
    wanted = np.asarray(efficiency, float)
    require(np.all((wanted > 0) & (wanted < 1)), "efficiency", "more than 0 and less than 1", efficiency)
    return np.ceil(guard / (1 - wanted) - (0 if inside else guard))[()]


def slot_within(wait: Time, hosts, guard: Time = 15 * us):
    """The longest slot with which every pair of `hosts` meets again within `wait`, in ps; negative for none."""
    return np.floor(wait / (np.asarray(hosts) - 1) - guard)[()]


# ---------------------------------------------------------------- the controller (§4.4)


def controller_hosts(nics=8, hosts_per_nic=24):
    """Hosts that one controller reaches when each of its NICs serves one edge switch."""
    within("nics", nics, 1)
    within("hosts_per_nic", hosts_per_nic, 1)
    return nics * hosts_per_nic


def frames_in(window: Time = 15 * us, link: Rate = 10 * Gbps, frame: Size = FRAME):
    """Pause frames that one NIC can send within `window`: the wire's bound on hosts per NIC."""
    return np.floor(np.asarray(window, float) * link / ((frame + pfc.GAP) * 8 * s))[()]


def parts(hosts, hosts_per_switch=24, nics=8) -> Bill:
    """What TDMA adds to a network of so many hosts: controllers, their NICs, a NIC with fast pause in each host."""
    within("hosts", hosts, 1)
    controller_hosts(nics, hosts_per_switch)
    switches = -(-np.asarray(hosts) // hosts_per_switch)
    return Bill(
        {"fabric manager": _whole(-(-switches // nics)), "fabric manager NIC": _whole(switches), "host NIC": hosts}
    )


# ---------------------------------------------------------------- pause frames (§3.2.2, §5.1)


def quantum(link: Rate = 10 * Gbps) -> float:
    """One unit of pause time, in ps."""
    return pfc.quantum(link)


def longest_pause(link: Rate = 10 * Gbps) -> float:
    """The longest pause that one 802.3x frame can ask for, in ps."""
    return LONGEST_QUANTA * quantum(link)


def quanta_for(pause: Time, link: Rate = 10 * Gbps):
    """Quanta that pause a sender for at least `pause`."""
    quanta = np.ceil(np.asarray(pause) / quantum(link))
    require(np.all(quanta <= LONGEST_QUANTA), "pause", f"at most {longest_pause(link) / ms:.4g} ms", f"{pause} ps")
    return _whole(quanta)


def ramp(start: Rate = 1 * Gbps, end: Rate = 10 * Gbps, rtt: Time = 250 * us, segment: Size = SEGMENT) -> float:
    """Time that TCP's congestion avoidance takes from one rate to another, in ps (§6.4)."""
    windows = (end - start) * rtt / 8 / s / segment
    return windows * rtt


# ---------------------------------------------------------------- printed beside computed


def table(key: str, catalogue: Catalogue | None = None) -> tables.Table:
    """Printed numbers of the paper with ours beside them: 5.1, 6 or claims."""
    key = tables.find("tdma", key)
    return tables.beside("tdma", key, _TABLES[key]())


def _table_51():
    return {
        "class field, 802.1Qbb": int(np.log2(CLASSES["802.1Qbb"])),
        "classes, 802.1Qbb": CLASSES["802.1Qbb"],
        "class field, extended": int(np.log2(CLASSES["extended"])),
        "classes, extended": CLASSES["extended"],
        "pause unit": QUANTUM_BITS,
        "pause time field": (LONGEST_QUANTA + 1).bit_length() - 1,
        "EtherType": f"{pfc.TYPE:#06x}",
        "opcode, 802.3x": f"{pfc.OPCODES[pfc.PAUSE]:#06x}",
        "opcode, 802.1Qbb": f"{pfc.OPCODES[pfc.PFC]:#06x}",
        "frame size": FRAME,
    }


def _table_6():
    rows = {}
    for where, pods in (("one switch", 1), ("tree", 3)):
        rows[f"ideal, {where}"] = Slots().all_to_all(pods=pods)["ideal"] / s
        for reading, inside in (("guard between slots", False), ("guard inside slots", True)):
            rows[f"TDMA, {where}, {reading}"] = Slots(inside=inside).all_to_all(pods=pods)["tdma"] / s
    return rows


def _claims():
    slots = Slots()
    return {
        "slots between pings": 30 * ms / slots.slot,
        "bandwidth that a ping slot costs": 100 * slots.slot / (30 * ms),
        "bytes in a slot": Slots(guard=0).block / KB,
        "TCP ramp from 1 to 10 Gb/s": ramp() / ms,
        "TCP ramp from 1 to 10 Gb/s, 1500 B": ramp(segment=1500) / ms,
        "control traffic per host": slots.control_rate / Mbps,
        "effective control traffic": slots.control_rate / 2 / Mbps,
        "effective control overhead": 100 * slots.control_overhead,
        "a 64 B frame": FRAME * 8 * s / slots.link / us,
        "longest pause": longest_pause() / ms,
        "pause quantum": quantum() / ns,
        "hosts per controller": controller_hosts(),
        "hosts per controller, 48 per NIC": controller_hosts(hosts_per_nic=48),
        "time that guards take": 100 * (1 - slots.efficiency),
    }


_TABLES = {"5.1": _table_51, "6": _table_6, "claims": _claims}


def _whole(count):
    """A count as an int where it is one number, as an array where it is many."""
    return int(count) if np.ndim(count) == 0 else count
