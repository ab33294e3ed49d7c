"""Being nobody for a while: root may write everywhere, and some tests are about places one may not write to."""

import os
from contextlib import contextmanager

NOBODY = 65534


@contextmanager
def without_privileges():
    """Let root become nobody; everybody else stays who they are."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
