"""Damaged cells (App. D) and clocks that are off (§3.4): whose checksum is wrong, and what is sent again."""

from weft.random import below_one, key, word
from weft.wire.shoal import HEADER


class Damage:
    """Which cells are damaged, who complains, and who repeats."""

    def damage(self, m):
        """Decide whether the checksum of what m carries will be wrong; returns the bit that is."""
        draw = (m.slot * self.schedule.channels + m.channel) * len(self.nodes) + m.sender
        seed, threshold, bits = self.bit_errors or (0, 0, 512)
        if {m.sender, m.receiver} & self.now.off:
            m.damaged = "collided"
        elif word(key(seed, 0), draw) < threshold:
            m.damaged = "corrupted"
        return below_one(word(key(seed, 1), draw), bits) if m.damaged else None

    def damage_feedback(self, m, bit):
        """Flip the wrong bit of m's feedback, if that is where it is: one value after the other, the newest first."""
        value, at = divmod(bit - HEADER.offset("feedback"), dict(HEADER.fields)["feedback"])
        if 0 <= value < len(m.feedback) and m.feedback[value] is not None:
            m.feedback[value][1].ahead ^= 1 << at

    def complain(self, node, i):
        """The next cell to i will say that its last one was dropped."""
        if i not in node.failed:
            node.complaints.add(i)

    def repeat(self, j, node, i, slot):
        """Send again what i speaks of in the cell it sent in `slot`: our last cell that had arrived by then."""
        if i in node.failed:
            return
        turn, e = self.schedule.where(j, i) // self.schedule.channels, self.schedule.slots
        last = (slot - self.delay - 1 - turn) // e * e + turn
        for sent, cell in node.sent[i]:
            if sent == last and self.lives(cell):
                queue = node.queue[i][self.class_of(cell)]
                queue.appendleft(self.copy_of(cell))
                self.note_lengths(node, queue)
