"""The driver of a GPU, woken early: it takes a while to make a context, in which Python can import.

Nothing depends on it. Whoever uses the GPU asks for the context of its first device, as Numba does, and finds it made;
what is wrong with the driver is found out and said there.
"""

import ctypes
import os
from functools import cache
from threading import Thread


@cache
def wake() -> Thread | None:
    """Have the driver make the context in a thread of its own; the program does not end before that."""
    if os.environ.get("NUMBA_CUDA_DRIVER") or os.environ.get("NUMBA_ENABLE_CUDASIM", "0") != "0":
        return None  # it is another one, or none
    thread = Thread(target=_make_context)
    thread.start()
    return thread


def _make_context() -> None:
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        device, context = ctypes.c_int(), ctypes.c_void_p()
        if driver.cuInit(0) == 0 and driver.cuDeviceGet(ctypes.byref(device), 0) == 0:
            driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
    except (OSError, AttributeError):  # no driver, or not one that knows these
        pass
