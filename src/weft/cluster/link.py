"""The way to a scheduler: somebody's client, an address, or a cluster made of this machine's processes."""

import logging
import signal
import socket
import threading
import time
from contextlib import contextmanager
from urllib.parse import urlsplit

from distributed import Client, LocalCluster

from weft.cluster import MUST
from weft.cluster.worker import MEMORY
from weft.errors import BadInput, WeftError, require
from weft.memory import may_have

CONNECT = 5  # s of wall time within which a scheduler must answer
AGAIN = 60  # s within which one that was lost must be back
PORT = 8786  # of a Dask scheduler, unless told
LONGEST = 1 << 20  # bytes of a scheduler's greeting
STRANGER = "what listens there is no scheduler"


class Link:
    """`with Link(on) as link:` has a client as `link.client`; what it opened itself it closes."""

    def __init__(self, on):
        self.on, self.client, self.cluster = on, None, None
        self.own = isinstance(on, str)
        if not self.own:
            require(isinstance(on, Client) and not on.asynchronous, "on", MUST, on)

    def __enter__(self):
        try:
            self._open()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *error):
        self.close()

    @property
    def name(self) -> str:
        """The scheduler as a user knows it."""
        return self.on if self.own else self.client.scheduler.address

    def _open(self):
        if not self.own:
            self.client = self.on
        elif self.on.startswith("local:"):
            self.client = self._local(int(self.on.removeprefix("local:")))
        else:
            self.client = self._connect()

    def _local(self, count):
        with _ignored_interrupt():  # the processes inherit it: Ctrl-C is ours to pass on
            self.cluster = LocalCluster(
                n_workers=count, threads_per_worker=1, processes=True, host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
                memory_limit=0, resources={MEMORY: may_have() // count}, silence_logs=logging.CRITICAL,
            )  # fmt: skip
        return Client(self.cluster, set_as_default=False)

    def _connect(self):
        must = f"on must be a Dask scheduler that answers within {CONNECT} s, not {self.on}"
        if reason := _deaf(self.on):
            raise BadInput(f"{must}: {reason}")
        opened = bounded(lambda: Client(self.on, timeout=CONNECT, set_as_default=False, name="weft"), 2 * CONNECT)
        if not isinstance(opened, Client):  # whatever listens there speaks something else
            raise BadInput(f"{must}: {STRANGER}")
        return opened

    def again(self, kept: str) -> None:
        """Wait until a scheduler that was lost is back; `kept` says what there is if it does not come."""
        end = time.monotonic() + AGAIN
        while time.monotonic() < end:
            if self.own and self.cluster is None and self.client.status in ("closed", "closing"):
                try:
                    self.client = self._connect()
                except BadInput:
                    continue
            if self.client.status == "running":
                return
            if not self.own and self.client.status == "closed":
                break
            time.sleep(0.2)
        raise WeftError(f"the scheduler {self.name} must stay or come back within {AGAIN} s: it is gone; {kept}")

    def close(self) -> None:
        """Close what was opened here."""
        if self.own and self.client is not None:
            self.client.close()
        if self.cluster is not None:
            self.cluster.close()


def bounded(call, seconds):
    """What `call` returns or raises, or None if it takes longer; it may go on in its thread."""
    found = []

    def do():
        try:
            found.append(call())
        except Exception as error:  # handed to the caller, who waits in another thread
            found.append(error)

    thread = threading.Thread(target=do, daemon=True)
    thread.start()
    thread.join(seconds)
    return found[0] if found else None


def _deaf(address) -> str | None:
    """Why no scheduler is at an address, found in seconds: Dask tries again until its time is up, or waits forever.

    A scheduler speaks first: the length of its greeting, as eight bytes.
    """

    def ask():
        parts = urlsplit(address)
        with socket.create_connection((parts.hostname, parts.port or PORT), timeout=CONNECT) as there:
            if parts.scheme == "tls":
                return ""
            there.settimeout(CONNECT)
            said = there.recv(8)
            return "" if len(said) == 8 and int.from_bytes(said, "little") < LONGEST else STRANGER

    said = bounded(ask, 2 * CONNECT)  # to look a name up may take any time
    if isinstance(said, TimeoutError) or said is None:
        return "no answer"
    if isinstance(said, Exception):
        return (getattr(said, "strerror", None) or str(said)).lower()
    return said or None


@contextmanager
def _ignored_interrupt():
    """Processes that are started in any thread ignore Ctrl-C; outside the main thread nobody can see to that."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
