"""`@kernel`: njit with this project's options, and a cache that knows when it is stale.

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

kernel = njit(cache=True, error_model="numpy")

# For kernels that make no array of their own: without reference counting, which costs a call over a State of forty
# arrays some two microseconds, as much as a nearly idle slot.
bare = njit(cache=True, error_model="numpy", _nrt=False)

# For pieces of a kernel that run per cell: a call would pass every array by value, seven words each.
inlined = njit(inline="always", error_model="numpy")

# For what only kernels call: without the wrapper for Python, which for a hundred arrays takes a second to compile.
inner = njit(error_model="numpy", _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)
