"""Studies beyond one machine: runs go to the workers of a Dask scheduler, and their folders come back.

    home.py     the process that owns the study: hands runs out, puts results in place, counts what is done
    link.py     its way to a scheduler: a client, an address, or processes of this machine
    worker.py   what is called on workers: a greeting, a run, a stop

Nothing here is imported unless a study is told to run on a cluster; Dask is the extra `cluster`.
"""

from weft.errors import Unusable, require

MUST = "a Dask client, the address of a scheduler as in tcp://host:8786, local:N for N processes here, or gpu"


def check(on) -> None:
    """Raise a sentence if a text cannot say where a study is to run."""
    if not isinstance(on, str):
        return
    if on.startswith("local:"):
        count = on.removeprefix("local:")
        require(count.isascii() and count.isdigit() and 1 <= int(count) <= 1024, "on", "local:1 to local:1024", on)
    else:
        require(on.startswith(("tcp://", "tls://")) and len(on) > 6, "on", MUST, on)


def on_cluster(jobs, todo, shares, found, on, progress) -> list:
    """Do the jobs numbered `todo` on a cluster; returns the results of those that have no place."""
    try:
        import distributed  # noqa: F401
    except ImportError as error:
        raise Unusable(
            f"a cluster needs dask.distributed, which cannot be loaded ({error}): pip install 'weft[cluster]'"
        ) from None
    from weft.cluster.home import Home
    from weft.cluster.link import Link

    if not todo:
        return [None] * len(jobs)
    with Link(on) as link:
        return Home(jobs, todo, shares, found, link, progress).run()
