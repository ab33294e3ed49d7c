"""The bus in plain Python, one cell at a time, written from what it is to do and not from the kernel."""

from collections import deque

from weft.engine.fingerprint import Fingerprint


class Twin:
    """A bus under way."""

    def __init__(self, fabric, flows):
        self.fabric, self.flows, self.slot = fabric, flows, 0
        self.left = fabric.cells(flows.size).tolist()
        self.finish = [-1] * len(flows)
        self.waiting = [deque() for _ in range(fabric.nodes)]
        self.coming = deque(range(len(flows)))
        self.print = Fingerprint()

    def run(self):
        """Let slots pass until every flow is done."""
        while -1 in self.finish:
            while self.coming and self.flows.start[self.coming[0]] <= self.slot * self.fabric.slot:
                f = self.coming.popleft()
                self.waiting[self.flows.src[f]].append(f)
            queue = self.waiting[self.slot % self.fabric.nodes]
            if queue:
                f = queue[0]
                self.left[f] -= 1
                self.print.fold(self.slot, f)
                if self.left[f] == 0:
                    queue.popleft()
                    self.finish[f] = (self.slot + 1) * self.fabric.slot
            self.slot += 1
        return self
