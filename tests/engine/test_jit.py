"""Does the cache of compiled kernels know when it is stale?"""

import re
from pathlib import Path

import weft
from weft.engine import jit


def test_every_file_that_holds_a_kernel_is_in_the_key_of_the_cache():
    """Else an edit there goes unnoticed, and yesterday's machine code runs."""
    files = Path(weft.__file__).parent.rglob("*.py")
    kernels = {
        path for path in files if re.search(r"^@(kernel|bare|part|hot|view|inlined|njit)\b", path.read_text(), re.M)
    }
    assert len(kernels) > 20
    assert kernels <= set(jit._sources), sorted(kernels - set(jit._sources))
