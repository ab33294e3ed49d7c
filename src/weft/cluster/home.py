"""The one process that owns a study: it hands runs to workers, puts what comes back in its place, and counts.

The scheduler never holds the study, only a few runs for each worker: a study of any size is the same to it. All that
can take long, or forever, happens in other threads; this loop waits for none of them longer than a moment, and Ctrl-C
is heard in it.
"""

import asyncio
import logging
import os
import pickle
import threading
from collections import deque
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from queue import Empty, SimpleQueue
from secrets import token_hex
from time import monotonic

import dask
from distributed.scheduler import KilledWorker

from weft import errors, files
from weft.checkpoint import Checkpoint, is_whole
from weft.cluster import worker
from weft.cluster.link import bounded
from weft.cluster.worker import LARGEST, MEMORY, SLOT, folder_digest
from weft.errors import BadInput, MonitorTripped, TooLarge, WeftError, require
from weft.experiment import allow, need
from weft.metrics.folder import replaced
from weft.metrics.provenance import version
from weft.metrics.result import FILES, is_result
from weft.sources import digest_of
from weft.study import FAILED, LOOK, Claims
from weft.units import show_size
from weft.workload.files import inputs

AHEAD = 3  # tasks that a worker has or is sent before it has answered for the first of them
TASK = 0.25  # s that a task should take: shorter runs go out together, or Dask would cost as much as they do
MOST = 16  # runs of one task
GREET = 1.0  # s between two looks for new workers
PATIENCE = 600.0  # s that a study waits for a worker while there is none
GRACE = 10.0  # s after a worker came, within which a larger one may come
STOPPING = 15.0  # s within which runs reach the end of a stride and keep their state
ATTEMPTS = 3  # workers on which a run may break before it counts as failed
STRIKES = 2  # times that a run may have killed as many workers as Dask allows
TOLD = 3  # failed runs that are named in the end

log = logging.getLogger("weft.cluster")


@dataclass
class Flight:
    """A run that was handed out."""

    attempt: int
    future: object


@dataclass
class Past:
    """What a run has been through."""

    attempt: int = 0
    broke_on: dict = field(default_factory=dict)  # worker -> what it said
    strikes: int = 0  # times that workers died of it, as far as Dask can tell


class Home:
    """A study under way on a cluster."""

    def __init__(self, jobs, todo, shares, found, link, progress):
        self.jobs, self.shares, self.found, self.link, self.progress = jobs, shares, found, link, progress
        self.study = token_hex(8)
        self.results = [None] * len(jobs)
        self.waiting, self.held, self.suspects = deque(todo), [], deque()
        self.flying: dict[int, Flight] = {}
        self.past = {k: Past() for k in todo}
        self.failed: dict[int, WeftError] = {}
        self.workers: dict[str, dict] = {}
        self.refused: dict[str, str] = {}
        self.together, self.pace = 1, None  # runs that go out as one task; s that one takes, lately
        self.heard = SimpleQueue()  # what other threads have to say: functions to call here
        self.alone, self.came = monotonic(), 0.0  # since when there is no worker; when the last one came
        self.files, self.travel, self.link_number = {}, False, 0
        self.stamp = f".weft-{self.study}"
        self.folder = jobs[todo[0]].place and jobs[todo[0]].place.parent.resolve()
        self.sources = {k: digest_of(jobs[k].point.fabric, jobs[k].point.workload) for k in todo}
        self.needs = {k: _need(jobs[k].point) for k in todo}
        self.kinds = _kinds({k: jobs[k].point for k in todo}, self.sources)
        self.gate = "weft-" + sha256(" ".join(sorted(self.kinds)).encode()).hexdigest()[:12]
        self.claims, self.greeter_ends = None, threading.Event()

    def run(self) -> list:
        """Do everything; raises at the end what was wrong with the runs that failed."""
        try:
            if self.folder is not None:
                self.claims = Claims(self.folder)
                with files.replaced(self.folder / self.stamp, own=True) as fresh:
                    fresh.write_text(self.study)
            self._connect()
            while self.waiting or self.held or self.suspects or self.flying:
                self._hand_out()
                self._listen(LOOK)
                self._mind()
                self.progress(self.shares, self.found)
        except BaseException:
            self._stop()
            raise
        finally:
            self.greeter_ends.set()
            if self.claims is not None:
                self.claims.close()
                (self.folder / self.stamp).unlink(missing_ok=True)
        self._complain()
        return self.results

    # workers

    def _connect(self):
        """Begin with a scheduler that knows nothing of us."""
        self.client, self.link_number = self.link.client, self.link_number + 1
        self.workers, self.files, self.alone = {}, {}, monotonic()
        number = self.link_number
        self.client.subscribe_topic(self._topic, lambda event: self._tell(lambda: self._seen(event[1])))
        self.greeter_ends = threading.Event()
        threading.Thread(target=self._greet, args=(self.client, number, self.greeter_ends), daemon=True).start()

    @property
    def _topic(self):
        return f"weft-{self.study}"

    def _tell(self, what):
        self.heard.put(what)

    def _greet(self, client, number, end):
        """In a thread: look who is there, and greet who is new."""
        known = set()
        kinds = [(sources, pickled, names) for sources, (pickled, names) in self.kinds.items()]
        while not end.is_set():
            try:
                there = set(client.nthreads())
                if gone := known - there:
                    known -= gone
                    self._tell(lambda gone=gone: self._left(gone))
                if new := there - known:
                    hosts = [address.rpartition(":")[0] for address in there]
                    peers = max(hosts.count(host) for host in set(hosts))
                    about = {"kinds": kinds, "gate": self.gate, "peers": peers, "version": version()}
                    answers = client.run(worker.greet, about, workers=sorted(new), on_error="return")
                    known |= new
                    self._tell(lambda answers=answers: self._joined(answers))
            except Exception as error:  # Dask raises what it likes while a scheduler goes, and this thread must go on
                log.debug(f"while greeting: {error!r}")
                if client.status != "running":
                    self._tell(lambda: self._lost(number))
                    return
            end.wait(GREET)

    def _joined(self, answers):
        for address, answer in answers.items():
            if not isinstance(answer, dict):  # it has no weft, or one that knows no clusters
                answer = {"refused": f"must have weft {version()}, not one that cannot be asked: {answer}"}
            if "refused" in answer:
                sentence = f"worker {address} {answer['refused']}"
                if sentence not in self.refused.values():
                    log.warning(sentence)
                self.refused[address] = sentence
                continue
            self.workers[address], self.came = answer, monotonic()
            if answer["threads"] > 1:
                log.warning(
                    f"worker {address} has {answer['threads']} threads and runs one run at a time: for as many, start "
                    f"`dask worker --nworkers {answer['threads']} --nthreads 1`"
                )
        self._reconsider()

    def _left(self, gone):
        for address in gone:
            self.workers.pop(address, None)
            self.refused.pop(address, None)
        if not self.workers:
            self.alone = monotonic()
        for k in [k for k in self.flying if not self._able(k)]:  # Dask would let it wait for a worker that is gone
            self._recall(k)
        self._reconsider()

    def _able(self, k) -> list[str]:
        """The workers that may do a run: large enough, and not those it broke on."""
        broke = self.past[k].broke_on
        wants = self.needs[k]
        return [one for one, can in self.workers.items() if can["memory"] >= wants and one not in broke]

    def _reconsider(self):
        self.waiting.extend(self.held)
        self.held = []

    def _mind(self):
        """Do what is due because time has passed."""
        if self.workers:
            if self.held and monotonic() - self.came > GRACE:
                self._give_up_on(self.held)
                self.held = []
            return
        if self.refused and not self.flying:
            raise WeftError(next(iter(self.refused.values())))
        if monotonic() - self.alone > PATIENCE:
            raise WeftError(f"{self.link.name} must have a worker within {PATIENCE:g} s, not none; {self._kept}")

    def _give_up_on(self, some):
        for k in some:
            point, past = self.jobs[k].point, self.past[k]
            if past.broke_on:
                self._fail(k, WeftError(next(iter(past.broke_on.values()))))
                continue
            try:
                most = int(max(can["memory"] for can in self.workers.values()))
                allow(point.fabric, point.workload.planned(point.fabric.nodes), most)
            except TooLarge as error:
                self._fail(k, error)

    @property
    def _kept(self) -> str:
        done = sum(share >= 1 for share in self.shares)
        there = "kept, and the same study goes on from there" if self.folder else "done"
        return f"{done} of {len(self.jobs)} runs are {there}"

    # handing out

    def _hand_out(self):
        self._group()
        room = AHEAD * len(self.workers) * self.together - len(self.flying)
        taken, batch = [], []
        while room > 0 and self.waiting:
            k = self.waiting.popleft()
            job = self.jobs[k]
            if self.claims is not None and not self.claims.take(job.place):
                taken.append(k)
                if len(taken) > AHEAD * len(self.workers):  # somebody else is at work: look again in a moment
                    break
                continue
            if job.done:
                self._end(k, 1.0)
            elif self._able(k):
                batch.append(k)
                room -= 1
                if len(batch) >= self.together or self._delicate(k):
                    self._send(batch)
                    batch = []
            else:
                self._give(k)
                self.held.append(k)
        if batch:
            self._send(batch)
        self.waiting.extend(taken)
        if self.suspects and not any(self.past[k].strikes for k in self.flying) and self.workers:
            self.waiting.appendleft(self.suspects.popleft())  # one at a time, so that it is clear who kills

    def _group(self):
        """Choose how many runs go out together: as many as take a moment, and no more than all workers can share."""
        fit = int(TASK / self.pace) if self.pace else 1
        fair = len(self.waiting) // (AHEAD * len(self.workers)) if self.workers else 1
        self.together = max(1, min(fit, fair, MOST))

    def _delicate(self, k) -> bool:
        """Whether a run should end its batch: it waits for some workers only, or comes with files."""
        past = self.past[k]
        return bool(past.broke_on or past.strikes or self.travel)

    def _send(self, batch):
        if len(batch) > 1 and any(map(self._delicate, batch)):
            for k in batch:
                self._send([k])
            return
        orders, sent = [], {}
        for k in batch:
            self.past[k].attempt += 1
            orders.append(self._order(k, sent))
        first = self.past[batch[0]]
        future = self.client.submit(
            worker.work, orders, *(self._file(path, digest) for path, digest in sent.items()),
            key=f"weft-run-{self.study}-{batch[0]}-{first.attempt}", pure=False,
            resources={SLOT: 1, MEMORY: max(self.needs[k] for k in batch), self.gate: 1},
            workers=self._able(batch[0]) if first.broke_on else None,
        )  # fmt: skip
        attempts = {k: self.past[k].attempt for k in batch}
        self.flying |= {k: Flight(attempt, future) for k, attempt in attempts.items()}
        self._fetch(attempts, future)

    def _order(self, k, sent) -> dict:
        """What goes out with a run; the files that go with it are added to `sent`."""
        job = self.jobs[k]
        reads = inputs(job.point.fabric, job.point.workload)
        if self.travel:
            sent |= reads
        return {
            "study": self.study, "number": k, "name": job.place and job.place.name, "topic": self._topic,
            "point": pickle.dumps(job.point), "sources": self.sources[k], "memory": job.memory,
            "every": job.every, "home": self.folder and str(self.folder), "stamp": self.stamp, "inputs": reads,
            "sent": list(sent), "look": max(0.5, len(self.workers) / 200),
        }  # fmt: skip

    def _fetch(self, attempts, future):
        """Wait for some runs, and for their results to be here, in the client's own thread."""
        client = self.client

        async def fetch():
            return await client.gather(future, asynchronous=True)

        def tell(done):
            self._tell(lambda: self._settle(attempts, done))

        asyncio.run_coroutine_threadsafe(fetch(), client.loop.asyncio_loop).add_done_callback(tell)

    def _file(self, path, digest):
        if digest not in self.files:
            size = os.path.getsize(path)
            if size > LARGEST:
                raise BadInput(
                    f"{path} must be at most {show_size(LARGEST)} to travel to workers, not {show_size(size)}: put it "
                    "where they find it under the same name"
                )
            data = Path(path).read_bytes()
            require(sha256(data).hexdigest() == digest, path, "the same while a study runs", "changed")
            with dask.config.set({"distributed.admin.large-graph-warning-threshold": 2 * LARGEST}):
                self.files[digest] = self.client.submit(
                    worker.content, data, key=f"weft-file-{self.study}-{digest}", pure=False, resources={self.gate: 1}
                )
        return self.files[digest]

    # hearing

    def _listen(self, patience):
        """Hear what others have to say, waiting for the first a moment."""
        try:
            self.heard.get(timeout=patience)()
            while True:
                self.heard.get_nowait()()
        except Empty:
            pass

    def _seen(self, told):
        k, share = told
        if k in self.flying:
            self.shares[k] = share

    def _settle(self, attempts, done):
        numbers = list(attempts)
        current = [k for k in numbers if k in self.flying and self.flying[k].attempt == attempts[k]]
        if not current:  # recalled meanwhile
            return
        try:
            answers = done.result()
        except (CancelledError, asyncio.CancelledError):
            for k in current:
                self._recall(k)
            self._lost(self.link_number)
            return
        except KilledWorker:
            for k in current:
                self._killed(k)
            return
        except Exception as error:  # what Dask could not carry, of any type: the run is tried again, or said to fail
            answers = [{"end": "broken", "said": f"{type(error).__name__}: {error}", "worker": "?"}] * len(numbers)
        for k, answer in zip(numbers, answers, strict=True):
            if k in current:
                del self.flying[k]
                self._take(k, answer)
                took = answer.get("took", 0.0)
                self.pace = took if self.pace is None else 0.8 * self.pace + 0.2 * took

    def _take(self, k, answer):
        match answer["end"]:
            case "done":
                self._end(k, 1.0)
            case "files":
                _put(self.jobs[k].place, answer)
                self._end(k, 1.0)
            case "result":
                self.results[k] = pickle.loads(answer["result"])
                self._end(k, 1.0)
            case "wants":
                self.travel = True
                self.waiting.appendleft(k)
            case "failed":
                kind = getattr(errors, answer["error"], WeftError)
                self._fail(k, kind(answer["said"]))
            case "full":
                raise WeftError(answer["said"])
            case "broken":
                self._broken(k, answer)
            case "stopped":
                self._give(k)
                self.waiting.append(k)

    def _broken(self, k, answer):
        """Something is wrong with a worker, or with the run: another worker tells."""
        past, address = self.past[k], answer["worker"]
        past.broke_on[address] = answer["said"]
        self.shares[k] = 0.0
        if len(past.broke_on) >= ATTEMPTS or not self._able(k):
            self._fail(k, WeftError(answer["said"]))
        else:
            log.warning(f"worker {address} could not do {self._name(k)}, another tries: {answer['said']}")
            self.waiting.appendleft(k)

    def _killed(self, k):
        """Workers died while they had this run; others may have been there with it."""
        past = self.past[k]
        past.strikes += 1
        del self.flying[k]
        self.shares[k] = 0.0
        if past.strikes >= STRIKES:
            sentence = "its worker was killed each time before the run was done, perhaps for want of memory"
            self._fail(k, WeftError(sentence))
        else:
            self.suspects.append(k)

    def _recall(self, k):
        flight = self.flying.pop(k)
        flight.future.release()
        self.shares[k] = 0.0
        self.waiting.appendleft(k)

    def _lost(self, number):
        """The scheduler is gone, and all it knew: begin again when it is back."""
        if number != self.link_number or self.client.status == "running":
            return
        log.warning(f"the scheduler {self.link.name} is gone: waiting for it")
        self.greeter_ends.set()
        for k in list(self.flying):
            self._recall(k)
        self.link.again(self._kept)
        self._connect()

    # ends

    def _name(self, k) -> str:
        place = self.jobs[k].place
        return place.name if place else f"run {k + 1}"

    def _give(self, k):
        if self.claims is not None:
            self.claims.give(self.jobs[k].place)

    def _end(self, k, share):
        self.shares[k] = share
        self._give(k)

    def _fail(self, k, error):
        self.failed[k] = error
        self._end(k, FAILED)

    def _complain(self):
        if not self.failed:
            return
        said = [f"{self._name(k)}: {error}" for k, error in list(self.failed.items())[:TOLD]]
        more = f"; and {len(self.failed) - TOLD} more" if len(self.failed) > TOLD else ""
        tripped = any(isinstance(error, MonitorTripped) for error in self.failed.values())
        kind = MonitorTripped if tripped else WeftError
        others = ", the others are kept" if self.folder is not None else ""
        raise kind(f"{len(self.failed)} of {len(self.jobs)} runs failed{others}: {'; '.join(said)}{more}")

    def _stop(self):
        """Let runs end their stride and keep their state; take in what is done meanwhile."""
        if not self.link_number or self.client.status != "running":
            return
        self.greeter_ends.set()
        client, present = self.client, list(self.workers)
        if present:
            bounded(lambda: client.run(worker.halt, self.study, workers=present, on_error="ignore"), 0)
        end = monotonic() + STOPPING
        try:
            while self.flying and present and monotonic() < end:
                self._listen(LOOK)
        except Exception as error:  # what made it stop is about to be raised, and says more
            log.warning(f"while stopping: {error}")
        for flight in self.flying.values():
            flight.future.release()


def _need(point) -> int:
    return need(point.fabric, point.workload.planned(point.fabric.nodes))


def _kinds(points, sources) -> dict:
    """Source -> (fabric and workload, pickled; their names): one of every kind that workers must know."""
    found: dict = {}
    for k, point in points.items():
        things = (point.fabric, point.workload)
        names = " and ".join(type(thing).__name__ for thing in things)
        for thing in things:
            if type(thing).__module__ == "__main__":
                raise BadInput(
                    f"{type(thing).__name__} must be in a module that workers can import, not in the program that is "
                    "run"
                )
        if sources[k] not in found:
            found[sources[k]] = (pickle.dumps(things), names)
    return found


def _put(place, answer):
    """Put a result that travelled in its place, if it arrived as it was sent."""
    sent = answer["files"]
    if set(sent) != set(FILES) or folder_digest(sent) != answer["digest"]:
        raise WeftError(f"{place} must arrive as it was sent, not damaged; the same study goes on from what is kept")
    with replaced(place, ours=is_result, files=FILES) as fresh:
        for name, data in sent.items():
            (fresh / name).write_bytes(data)
    if not is_whole(place):
        raise WeftError(f"{place} must be a whole result, not a part of one")
    Checkpoint.beside(place).remove()
