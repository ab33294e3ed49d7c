"""The decorators of kernels: njit with this project's options, and a cache that knows when it is stale.

Numba keys its cache on one file, so an edited helper elsewhere, or NUMBA_BOUNDSCHECK=1, goes unnoticed and yesterday's
machine code runs. The cache folder of a kernel is therefore keyed on the files that its module depends on, found by
following its imports (`weft.sources`), on the flag, and on the versions of Numba and Python. Where it lies nobody else
can write (`weft.cache`); what is damaged there is compiled again.
"""

import ctypes
import fcntl
import gc
import os
import pickle
import sys
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from time import monotonic, sleep

import numba
from llvmlite.binding import Linkage
from numba import config, njit

from weft import memory, sources
from weft.cache import folder
from weft.errors import Unusable

try:
    from numba.core.caching import FunctionCache, IndexDataCacheFile
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler
except ImportError as error:  # they are Numba's own affair; docs/design.md says what happens when they change
    raise Unusable(
        f"Numba must have the compiler that weft's kernels build on, not that of {numba.__version__}: {error.msg}"
    ) from error


@cache
def cache_folder(module: str) -> str:
    """Where the machine code of the kernels of `module` is kept."""
    key = f"{sources.digest(module)} {numba.__version__} {sys.version} {config.BOUNDSCHECK}"
    return str(folder(sha256(key.encode()).hexdigest()[:16]))


class _Files(IndexDataCacheFile):
    """Numba's files of a kernel, each with its hash in front: what does not agree with it is not there.

    Numba unpickles whatever it finds, and hands machine code that was cut short to the linker.
    """

    def _load_index(self):
        try:
            version, stamp, overloads = self._read(self._index_path)
        except OSError:
            return {}
        return overloads if (version, stamp) == (self._version, self._source_stamp) else {}

    def _save_index(self, overloads):
        self._write(self._index_path, (self._version, self._source_stamp, overloads))

    def _load_data(self, name):
        return self._read(self._data_path(name))

    def _save_data(self, name, data):
        self._write(self._data_path(name), data)

    def _read(self, path):
        with open(path, "rb") as file:
            digest, content = file.read(32), file.read()
        if sha256(content).digest() != digest:
            raise OSError(f"{path} is damaged")
        return pickle.loads(content)

    def _write(self, path, thing):
        content = self._dump(thing)
        with self._open_for_write(path) as file:
            file.write(sha256(content).digest() + content)


COMPILING = 250_000_000  # bytes that it takes to compile a kernel: 230 MB for packet networks, 90 MB for a rack


PATIENCE = 120  # s to wait for another process that compiles the same; kernels take a tenth of that to half


class _Cache(FunctionCache):
    """Numba's cache of a kernel, on such files; what is not there is compiled only if there is room for that.

    And by one process at a time: others that want the same kernel wait, and find it.
    """

    def __init__(self, function):
        super().__init__(function)
        self._cache_file = _Files(
            cache_path=self._cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=self._impl.locator.get_source_stamp(),
        )

        self._claim = None

    def load_overload(self, sig, target_context):
        found = super().load_overload(sig, target_context)
        if found is None:
            memory.fits("compiling a kernel, once on this machine,", memory.taken() + COMPILING)
            if self._wait(sig):
                found = super().load_overload(sig, target_context)
                if found is not None:
                    self._give_back()
        return found

    def save_overload(self, sig, data):
        with suppress(OSError):  # a disk that is full: what was compiled serves this process
            super().save_overload(sig, data)
        self._give_back()

    def _wait(self, sig) -> bool:
        """Claim the compiling of a signature, which ends with this process at the latest; True if others had it."""
        self._give_back()  # of what could not be compiled
        name = f"{self._impl.filename_base}.{sha256(str(sig).encode()).hexdigest()[:16]}.lock"
        waited, end = False, monotonic() + PATIENCE
        try:
            self._impl.locator.ensure_cache_path()
            self._claim = open(os.path.join(self._cache_path, name), "ab")  # noqa: SIM115
            while monotonic() < end:
                try:
                    fcntl.flock(self._claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    waited = True
                    sleep(0.05)
        except OSError:  # a file system without locks: then all compile, and the last one's stays
            pass
        return waited

    def _give_back(self):
        if self._claim is not None:
            self._claim.close()
            self._claim = None


def is_kept(kernel) -> bool:
    """Whether machine code of this kernel is on disk, for arguments of whatever types."""
    return bool(kernel._cache._cache_file._load_index())


OBJECTS = 10_000  # that come before Python looks for cycles among them, while it compiles


@contextmanager
def undisturbed():
    """Let a kernel be compiled without a look for cycles among what stays anyway, every 700 objects.

    A tenth of the time.
    """
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], OBJECTS) if before[0] else 0, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


# What a pointer to a part leads to, should Python call one: a TypeError where there would be a crash.
_refuse = ctypes.cast(ctypes.pythonapi.PyErr_BadArgument, ctypes.c_void_p).value


class _Part(JITCodeLibrary):
    """Code that is only linked into kernels: optimised there, once and with them, and no machine code of its own.

    Numba optimises and emits every function it compiles, with a copy of all that it calls: for the packet networks that
    was two thirds of 40 s.
    """

    def _optimize_final_module(self):
        pass

    def _finalize_final_module(self):
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, name):
        self._ensure_finalized()
        return _refuse

    @property
    def codegen(self):
        return self  # asked for `set_env` only

    def set_env(self, name, env):
        """Do nothing: there is no machine code whose environment could be set."""


class _Kernel(JITCodeLibrary):
    """A kernel and its parts, which nobody else can call: LLVM inlines those with one caller, and drops them."""

    def _optimize_final_module(self):
        for function in self._final_module.functions:
            if function.linkage == Linkage.linkonce_odr and not function.name.startswith("NRT_"):
                function.linkage = Linkage.internal
            for attribute in next((_calls[name] for name in _calls if function.name.startswith(name)), ()):
                function.add_function_attribute(attribute)
        super()._optimize_final_module()


class _Compiler(Compiler):
    """Numba's compiler, into a library of our own."""

    library: type

    def define_pipelines(self):
        self.state.library = self.library(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        self.state.library.enable_object_caching()
        return super().define_pipelines()


class _Parts(_Compiler):
    library = _Part


class _Kernels(_Compiler):
    library = _Kernel


_options = {"error_model": "numpy"}
_internal = {**_options, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": _Parts}


def _kept(function, **options):
    """Compile, keeping what was compiled where it is found again."""
    made = njit(pipeline_class=_Kernels, nogil=True, **_options, **options)(function)
    config.CACHE_DIR = cache_folder(function.__module__)
    made._cache = _Cache(function)
    return made


# The one dialect of kernels. Python calls the first two, which are cached on disk; kernels call the rest.


def kernel(function):
    """An entry that may allocate arrays."""
    return _kept(function)


def bare(function):
    """An entry that allocates nothing, without reference counting.

    Over a State of forty arrays that costs a call some two microseconds, as much as a nearly idle slot of a rack.
    """
    return _kept(function, _nrt=False)


# A function that becomes machine code only as a part of kernels, without the wrappers through which Python would call
# it: two thirds of the time to compile. LLVM decides whether to inline it; unless told so, Numba would have it inlined
# if a hot part is the first to call it.
part = njit(_nrt=False, forceinline=False, **_internal)

_calls: dict[str, tuple[str, ...]] = {}  # how the names of parts that stay calls begin, mangled -> LLVM's attributes


def _call(function, *attributes):
    names = [*function.__module__.split("."), function.__qualname__]
    _calls["_ZN" + "".join(f"{len(name)}{name}" for name in names)] = attributes
    return part(function)


def apart(function):
    """A part that stays a call, though only one kernel makes it: what it does takes no registers from that kernel's
    loops."""
    return _call(function, "noinline")


def rare(function):
    """One that lies apart as well, for what most runs never reach."""
    return _call(function, "noinline", "cold")


# A part that LLVM must inline, for what runs with every event or cell: a call would push the seven words of every
# array, and hide constants from the optimiser.
hot = njit(_nrt=False, forceinline=True, **_internal)

# A hot part that returns an array or a record reached by address (`engine.views`), for which Numba insists on
# reference counting; inlined, LLVM removes it again.
view = njit(_nrt=True, forceinline=True, **_internal)

# A part that may hand arrays on, with reference counting, for text that is compiled for several targets.
counted = njit(forceinline=False, **_internal)

# A function that Numba inlines before it infers types, so that it sees the caller's constants and literal types.
inlined = njit(inline="always", **_options)
