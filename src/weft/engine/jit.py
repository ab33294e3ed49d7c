"""The decorators of kernels: njit with this project's options, and a cache that knows when it is stale.

Numba keys its cache on one file, so an edited helper elsewhere, or NUMBA_BOUNDSCHECK=1, goes unnoticed and
yesterday's machine code runs. The cache folder is therefore keyed on the source of every kernel, the flag, and
the version of Numba and Python. Where the home folder cannot be written, a folder under the temporary one serves.
"""

import os
import sys
import tempfile
from hashlib import sha256
from pathlib import Path

import numba
from numba import config, njit

_weft = Path(__file__).parent.parent
_sources = sorted([*_weft.glob("engine/*.py"), *_weft.glob("fabrics/**/*.py"), *_weft.glob("schedule/*.py")])
_key = sha256(b"".join(p.read_bytes() for p in _sources))
_key.update(f"{numba.__version__} {sys.version} {config.BOUNDSCHECK}".encode())


def _cache_folder() -> str:
    name = _key.hexdigest()[:16]
    for parent in (os.environ.get("WEFT_CACHE"), Path.home() / ".cache/weft", Path(tempfile.gettempdir()) / "weft"):
        if not parent:
            continue
        folder = Path(parent) / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return str(folder)
    return ""


config.CACHE_DIR = _cache_folder()

_options = {"error_model": "numpy"}
_internal = {**_options, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}

# The one dialect of kernels. Python calls the first two, which are cached on disk; kernels call the rest.

# An entry that may allocate arrays.
kernel = njit(cache=True, **_options)

# An entry that allocates nothing, without reference counting: over a State of forty arrays that costs a call some two
# microseconds, as much as a nearly idle slot of a rack.
bare = njit(cache=True, _nrt=False, **_options)

# A function without the wrappers through which Python would call it: a quarter of the time to compile with records, a
# second for a function of a hundred arrays. LLVM decides whether to inline it.
part = njit(_nrt=False, **_internal)

# A part that LLVM must inline, for what runs with every event or cell: a call would push the seven words of every
# array, and hide constants from the optimiser.
hot = njit(_nrt=False, forceinline=True, **_internal)

# A hot part that returns an array or a record reached by address (`engine.views`), for which Numba insists on
# reference counting; inlined, LLVM removes it again.
view = njit(_nrt=True, forceinline=True, **_internal)

# A function that Numba inlines before it infers types, so that it sees the caller's constants and literal types.
inlined = njit(inline="always", **_options)
