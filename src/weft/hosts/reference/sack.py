"""Selective acknowledgements, from RFC 2018 and 6675; see hosts/sack.py."""


class Selective:
    """What a TCP subflow adds for them: as a sender which segment to send next, as a receiver the runs it holds."""

    def is_lost(self, seq):
        """RFC 6675 §4, in whole segments."""
        return len([s for s in self.sacked if s > seq]) >= 3

    def pipe(self):
        """RFC 6675 §4, SetPipe."""
        missing = [seq for seq in range(self.una, self.nxt) if seq not in self.sacked]
        return sum((not self.is_lost(seq)) + (seq <= self.high_rxt) for seq in missing)

    def next_seg(self):
        """RFC 6675 §4: the segment to send next in recovery, and the rule that says so; or None."""
        highest = max(self.sacked, default=-1)
        for seq in range(max(self.high_rxt + 1, self.una), highest):
            if seq not in self.sacked and self.is_lost(seq):
                return seq, 1
        if self.nxt - self.una < self.set.max_window and self.claim():
            return self.nxt, 2
        for seq in range(max(self.high_rxt + 1, self.una), highest):
            if seq not in self.sacked:
                return seq, 3
        if self.una - 1 > self.rescue_rxt:
            return max(seq for seq in range(self.una, self.nxt) if seq not in self.sacked), 4
        return None

    def run_of(self, seq):
        """The run of segments, (first, end), that `seq` belongs to among those held beyond a gap."""
        first = end = seq
        while first - 1 in self.have:
            first -= 1
        while end in self.have:
            end += 1
        return first, end
