"""The way to a scheduler: somebody's client, an address, or a cluster made of this machine's processes."""

import logging
import time

from distributed import Client, LocalCluster

from weft.cluster.worker import MEMORY
from weft.errors import BadInput, WeftError, require
from weft.experiment import may_have
from weft.study import _ignored_interrupt

CONNECT = 5  # s of wall time within which a scheduler must answer
AGAIN = 60  # s within which one that was lost must be back
MUST = "a Dask client, the address of a scheduler as in tcp://host:8786, or local:N for N processes of this machine"


class Link:
    """`with Link(on) as link:` has a client as `link.client`; what it opened itself it closes."""

    def __init__(self, on):
        self.on, self.client, self.cluster = on, None, None
        self.own = isinstance(on, str)
        if not self.own:
            good = isinstance(on, Client) and not on.asynchronous
            require(good, "on", MUST, on)
        elif on.startswith("local:"):
            count = on.removeprefix("local:")
            require(count.isascii() and count.isdigit() and 1 <= int(count) <= 1024, "on", "local:1 to local:1024", on)
        else:
            require(on.startswith(("tcp://", "tls://")) and len(on) > 6, "on", MUST, on)

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
                n_workers=count, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None,
                memory_limit=0, resources={MEMORY: may_have() // count}, silence_logs=logging.CRITICAL,
            )  # fmt: skip
        return Client(self.cluster, set_as_default=False)

    def _connect(self):
        try:
            return Client(self.on, timeout=CONNECT, set_as_default=False, name="weft")
        except (OSError, ValueError, TypeError, RuntimeError) as error:  # silent, no such name, no address
            reason = str(error.__cause__ or error).splitlines()[0].removesuffix(".")
            raise BadInput(
                f"on must be a Dask scheduler that answers within {CONNECT} s, not {self.on}: {reason}"
            ) from None

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
