"""Traffic classes (App. C): a queue per class, the first class first, and queues of lower classes that fill up."""

from weft.fabrics.shoal.reference import OUT, Heard


class Classes:
    """What is released, reported, sent and stored, class by class."""

    def release(self, i, node, j):
        for klass, queue in enumerate(node.queue[j]):
            self.release_class(i, node, j, klass, queue)
            self.note_lengths(node, queue)

    def release_class(self, i, node, j, klass, queue):
        """As in `ReferenceRack`, with the cells that will leave before ours: those of our class and the ones above."""
        length = sum(map(len, node.queue[j][: klass + 1]))
        local = any(cell.src == i for cell in queue)
        node.ready[j][klass] = 0
        for pair in node.in_turn(node.turn[j][klass]):
            if pair.klass != klass or not self.may_send(pair, j, length) or self.knows_parted(i, j, pair.dst):
                continue
            full = len(queue) >= self.depth[klass]
            if (self.ready_queues and local) or full or not self.old_enough(pair, length):
                node.ready[j][klass] += 1
                continue
            if not pair.again:
                self.released += 1
                if pair.seq == pair.acked:
                    pair.timer, pair.timeouts = self.slot, 0
            queue.append(pair.next_cell(self.sharing))
            pair.subflow[j] = OUT
            local = True
            node.turn[j][klass] = pair.seat + 1
            if not pair.busy:
                node.pairs.remove(pair)
            if not self.ready_queues:
                length += 1
        if not self.ready_queues:
            node.ready[j][klass] = 0

    def backlog(self, i, node, cell, channel):
        """Eq. (6) summed over the classes that go before ours."""
        above = range(self.class_of(cell) + 1)
        ahead = sum(len(node.queue[cell.dst][k]) + node.ready[cell.dst][k] for k in above)
        return cell, Heard(ahead, self.slot * self.schedule.channels + channel)

    def head(self, i, node, j):
        """The first cell of the highest class that has one."""
        queue = next((queue for queue in node.queue[j] if queue), None)
        if queue is None:
            self.cells["dummy"] += 1
            return None
        cell = queue.popleft()
        self.departed[i] += 1
        memory = self.schedule.slots + 2 * self.delay  # slots after which an answer to a cell can no longer come
        node.sent[j] = [(slot, c) for slot, c in node.sent[j] if slot >= self.slot - memory] + [(self.slot, cell)]
        if cell.src == i:
            self.cells["local"] += 1
            self.sent_now[i, j] = cell
            if cell.dst == j:
                self.pair(cell).subflow.pop(j, None)
        else:
            self.cells["forwarded"] += 1
        return cell

    def store(self, node, i, j, cell):
        """Queue a cell for its second hop, if there is one and there is room."""
        queue = node.queue[cell.dst][self.class_of(cell)]
        if cell.dst in node.failed:
            self.fold(cell, j, hop=3)
            self.lose(cell, "discarded")
            return
        if len(queue) >= self.depth[self.class_of(cell)]:
            self.fold(cell, j, hop=3)
            self.lose(cell, "dropped")
            self.complain(node, i)
            return
        self.fold(cell, j, hop=0)
        if any(self.same_pair(c, cell) for c in queue):
            self.broken["subflow"] += 1
        queue.append(cell)
        if i not in node.failed:
            node.owed[i] = cell
        self.note_lengths(node, queue)

    def note_lengths(self, node, queue):
        """Keep the longest queue and the fullest node."""
        self.max_queue = max(self.max_queue, len(queue))
        self.max_node = max(self.max_node, node.waiting())
