"""The end-to-end transport: cumulative acknowledgements, and timeouts that send again what is not acknowledged."""

from weft.fabrics.shoal.plain.reference.pairs import Ack
from weft.fabrics.shoal.reference import Cell

BURST, BACKOFF, EVERY = 16, 3, 8  # cells that a timeout sends again, times that it doubles, epochs between answers


class Transport:
    """What sources send again, and receivers acknowledge."""

    def time_out(self):
        """Once an epoch: send again what was not acknowledged in time, and acknowledge in turn."""
        for i in range(len(self.nodes)):
            turn = (self.slot // self.schedule.slots + i) % EVERY == 0
            for pair in reversed([pair for pair in self.live.values() if pair.src == i]):
                late = self.slot - pair.timer >= self.timeout << pair.timeouts
                if late and pair.seq > pair.acked and not pair.again and i not in self.down:
                    for seq in range(pair.acked, min(pair.seq, pair.acked + BURST)):
                        self.resent += 1
                        pair.copies += 1
                        self.repeat_later(Cell(pair.origin[seq], i, pair.dst, seq, pair.born))
                    pair.timer, pair.timeouts = self.slot, min(pair.timeouts + 1, BACKOFF)
                if turn and pair.dirty and pair.dst not in self.down:
                    back = self.find_pair(pair.dst, i, pair.klass)
                    self.acks += 1
                    back.copies += 1
                    pair.pending += 1
                    pair.dirty = False
                    self.repeat_later(Ack(len(self.flows), pair.dst, i, pair.expected, back.born, pair))

    def acknowledge(self, ack):
        """The source of a pair hears how far all of it has arrived."""
        pair = ack.about
        self.acks_in += 1
        pair.pending -= 1
        if ack.seq > pair.acked:
            pair.acked, pair.timer, pair.timeouts = ack.seq, self.slot, 0
        self.try_end(pair)
        self.drop_copy(ack)
