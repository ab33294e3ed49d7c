"""Kernel text that runs on a device, or without one: functions marked `device` are compiled for either when asked.

A text says what one thread does between two barriers, in plain functions over arrays. `compiled` makes a copy of it and
of all it calls (parts of other kernels too) for CUDA, for Numba's simulator of it, or for a loop over threads on the
processor, whose order may be any.
"""

from collections.abc import Callable
from dis import get_instructions
from functools import cache
from hashlib import sha256
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import config, cuda, types
from numba.core.registry import CPUDispatcher
from numba.extending import intrinsic

from weft.engine import bits
from weft.engine.jit import cache_folder, counted, undisturbed

THREADS = 1024  # of a block at most; a larger rack has several nodes a thread
REGISTERS = 65536  # of a multiprocessor, shared by the threads of a block …
MOST_REGISTERS = 128  # … of which more than these bring nothing
CLOSE = 48 << 10  # bytes that a block may have close by, in shared memory, without asking for more
_1 = np.uint64(1)
SIMULATED = bool(getattr(config, "ENABLE_CUDASIM", False))  # whether Numba's simulator stands in for CUDA
GROUPS = THREADS if SIMULATED else 32  # of threads of a block that are asked together, at most


def device(function):
    """Mark a function of a text; it stays as it is until `compiled` makes a copy."""
    function.of_device = True
    return function


def add_to(array, index, value):
    """Add to a number that several threads add to."""
    array[index] += value


def set_in(array, index, word):
    """Set bits of a word of which other threads set and clear others."""
    array[index] |= word


def set_far(array, index, word):
    """The same of a uint64 that is looked at often and does not lie close by."""
    array[index] |= word


def clear_in(array, index, word):
    """Clear bits of such a word."""
    array[index] &= ~word


def all_of(count, step):
    """Where a loop over so many must end for all threads to vote in it."""
    return count


def vote(array, row, i, flag):
    """Add i to the set of bits that begins at `row`, if flag says so. On a device all threads vote, once for 32."""
    if flag:
        array[row + (i >> 6)] |= _1 << np.uint64(i & 63)


def most_in(array, index, value):
    """Raise a number that several threads raise."""
    array[index] = max(array[index], value)


def barrier():
    """Wait for all threads: what they wrote can be read from here on."""


def tell(array, k, value):
    """Say that these 32 threads have come so far: who waits for that sees what they have written."""


def wait_until(array, k, least):
    """Wait until the k-th int32 is that large, counted on beyond its largest."""


def nanoseconds():
    """What the device's clock says; nothing where there is none."""
    return np.int64(0)


def some_of(flag):
    """Whether it holds for one of the 32 threads that are asked together."""
    return flag


def some_here(flag):
    """The same of those of the 32 that happen to come here together."""
    return flag


def here():
    """Which of the 32 threads come here together: a set of bits."""
    return 1


def some_still(mask, flag):
    """Whether it holds for one of these threads, which wait here for each other."""
    return flag


def first_of(flag):
    """The first of those 32 threads for which it holds, by its number among them."""
    return 0


def lane():
    """The number of a thread among its 32."""
    return 0


def lanes():
    """How many threads are asked together: 32 on a device."""
    return 1


def from_lane(value, k):
    """An int64 that the k-th of the 32 threads has."""
    return value


def union_of(word):
    """The bits that are set in a word of any of the 32 threads."""
    return word


def most_of(value):
    """The largest of the numbers of less than 32 bits that the 32 threads have."""
    return value


def wipe(array, start, step, count, flag):
    """Clear `count` words, if flag says so. On a device 32 threads come here together and help each other."""
    if flag:
        for k in range(count):
            array[start + k * step] = 0


def in_turn(orders, phase, k):
    """The k-th that is to do its part of a phase: on a device, where all do it at once, number k."""
    return orders[phase % orders.shape[0], k]


def lowest_bit(word):
    """Index of the lowest bit of a uint64 that is not zero."""
    return (int(word) & -int(word)).bit_length() - 1


def lowest_bit32(word):
    """Index of the lowest bit of a uint32 that is not zero."""
    return (int(word) & -int(word)).bit_length() - 1


def set_bits(word):
    """How many bits of a uint64 are set."""
    return int(word).bit_count()


def at(start, k):
    """Where the k-th word from `start` on lies, less than 2^32: a device adds so in one step, and knows the sign."""
    return start + k


def of(start, k):
    """Where the k-th word of what begins at `start` lies, a constant: a device takes that along with the address."""
    return np.uint64(start) + np.uint64(np.uint32(k))


def up(word, by):
    """A uint32 shifted to the left by less than 32 bits: a device does not ask whether it is less."""
    return np.uint32(np.uint32(word) << np.uint32(by))


def down(word, by):
    """The same to the right."""
    return np.uint32(np.uint32(word) >> np.uint32(by))


def soon(array, k):
    """Say that the k-th word will be asked for: a device brings its sector nearer, and nobody waits for that."""


def once(array, k):
    """The k-th word, at which nobody will look again soon: a device keeps others rather."""
    return array[k]


def put_once(array, k, value):
    """Write it."""
    array[k] = value


def both(array, k):
    """(The k-th word, the one behind it): of 64 bits, the first of which lies at a multiple of 128.

    They are looked at often: a device keeps them rather than others. So it does with `put_both` and `set_far`.
    """
    return array[k], array[k + np.uint64(1)]


def put_both(array, k, first, second):
    """Write the k-th word and the one behind it, as `both` reads them."""
    array[k], array[k + np.uint64(1)] = first, second


def settled(array, start):
    """What lies close by from word `start` on: where that is, a device keeps, and does not ask again."""
    return array[start:]


def row_of(array, b):
    """Row b of an array of two axes."""
    return array[b]


def _sum32(builder, args):
    short = ir.IntType(32)
    return builder.add(*(builder.trunc(arg, short) if arg.type.width > 32 else arg for arg in args))


def _at(typingctx, start, k):
    def codegen(context, builder, signature, args):
        return builder.zext(_sum32(builder, args), ir.IntType(64))

    return types.int64(start, k), codegen


def _at_on_cuda(typingctx, start, k):
    """As `_at`; the optimizer would widen the sum again, and does not look through an instruction of the device."""

    def codegen(context, builder, signature, args):
        short = ir.IntType(32)
        same = ir.InlineAsm(ir.FunctionType(short, [short]), "mov.b32 $0, $1;", "=r,r")
        return builder.zext(builder.call(same, [_sum32(builder, args)]), ir.IntType(64))

    return types.int64(start, k), codegen


def _nanoseconds_on_cuda(typingctx):
    def codegen(context, builder, signature, args):
        read = ir.InlineAsm(ir.FunctionType(ir.IntType(64), []), "mov.u64 $0, %globaltimer;", "=l", True)
        return builder.call(read, [])

    return types.int64(), codegen


def _word_at(context, builder, signature, args):
    """The address of the k-th word of an array, whatever kind of memory it lies in."""
    from numba.cuda.np.arrayobj import make_array

    data = make_array(signature.args[0])(context, builder, args[0]).data
    return builder.ptrtoint(builder.gep(data, [args[1]]), ir.IntType(64))


def _seen_on_cuda(typingctx, array, k):
    """The k-th int32, and all that was written before it."""

    def codegen(context, builder, signature, args):
        short, long = ir.IntType(32), ir.IntType(64)
        load = ir.InlineAsm(ir.FunctionType(short, [long]), "ld.acquire.cta.b32 $0, [$1];", "=r,l,~{memory}", True)
        return builder.call(load, [_word_at(context, builder, signature, args)])

    return types.int32(array, k), codegen


def _show_on_cuda(typingctx, array, k, value):
    def codegen(context, builder, signature, args):
        short, long = ir.IntType(32), ir.IntType(64)
        kinds = ir.FunctionType(ir.VoidType(), [long, short])
        store = ir.InlineAsm(kinds, "st.release.cta.b32 [$0], $1;", "l,r,~{memory}", True)
        builder.call(store, [_word_at(context, builder, signature, args), args[2]])
        return context.get_dummy_value()

    return types.void(array, k, types.int32), codegen


def _reduced(builder, word, which):
    """A word of 32 bits of all 32 threads together."""
    short = ir.IntType(32)
    does = ir.InlineAsm(ir.FunctionType(short, [short]), f"redux.sync.{which} $0, $1, 0xffffffff;", "=r,r", True)
    return builder.call(does, [word])


def _union_on_cuda(typingctx, word):
    def codegen(context, builder, signature, args):
        short, long, half = ir.IntType(32), ir.IntType(64), ir.Constant(ir.IntType(64), 32)
        low = _reduced(builder, builder.trunc(args[0], short), "or.b32")
        high = _reduced(builder, builder.trunc(builder.lshr(args[0], half), short), "or.b32")
        return builder.or_(builder.zext(low, long), builder.shl(builder.zext(high, long), half))

    return types.uint64(types.uint64), codegen


def _most_of_on_cuda(typingctx, value):
    def codegen(context, builder, signature, args):
        most = _reduced(builder, builder.trunc(args[0], ir.IntType(32)), "max.s32")
        return builder.sext(most, ir.IntType(64))

    return types.int64(types.int64), codegen


def _of(typingctx, start, k):
    def codegen(context, builder, signature, args):
        short, long = ir.IntType(32), ir.IntType(64)
        same = ir.InlineAsm(ir.FunctionType(short, [short]), "mov.b32 $0, $1;", "=r,r")
        word = builder.trunc(args[1], short) if args[1].type.width > 32 else args[1]
        first = builder.sext(args[0], long) if args[0].type.width < 64 else args[0]
        return builder.add(first, builder.zext(builder.call(same, [word]), long))

    return types.uint64(start, k), codegen


def _shifted(which):
    def shifted(typingctx, word, by):
        def codegen(context, builder, signature, args):
            short = ir.IntType(32)
            one, other = (builder.trunc(arg, short) if arg.type.width > 32 else arg for arg in args)
            return getattr(builder, which)(one, other)

        return types.uint32(word, by), codegen

    return shifted


def _soon_on_cuda(typingctx, array, k):
    def codegen(context, builder, signature, args):
        does = ir.InlineAsm(
            ir.FunctionType(ir.VoidType(), [ir.IntType(64)]), "prefetch.global.L2 [$0];", "l", True
        )  # fmt: skip
        builder.call(does, [_far(context, builder, signature, args)])
        return context.get_dummy_value()

    return types.void(array, k), codegen


# How long what is asked for stays in the last cache: the device's own words for it.
_FIRST, _LAST = (ir.Constant(ir.IntType(64), policy) for policy in (0x12F0000000000000, 0x14F0000000000000))


def _far(context, builder, signature, args):
    """The address of the k-th word of an array that lies far."""
    from numba.cuda.np.arrayobj import make_array

    data = make_array(signature.args[0])(context, builder, args[0]).data
    there = builder.addrspacecast(builder.gep(data, [args[1]]), ir.PointerType(data.type.pointee, 1))
    return builder.ptrtoint(there, ir.IntType(64))


def _once_on_cuda(typingctx, array, k):
    def codegen(context, builder, signature, args):
        bits = signature.return_type.bitwidth
        kind, long, letter = ir.IntType(bits), ir.IntType(64), "r" if bits == 32 else "l"
        text = f"ld.global.L2::cache_hint.b{bits} $0, [$1], $2;"
        load = ir.InlineAsm(ir.FunctionType(kind, [long, long]), text, f"={letter},l,l,~{{memory}}", True)
        return builder.call(load, [_far(context, builder, signature, args), _FIRST])

    return array.dtype(array, k), codegen


def _put_once_on_cuda(typingctx, array, k, value):
    def codegen(context, builder, signature, args):
        bits = signature.args[2].bitwidth
        kind, long, letter = ir.IntType(bits), ir.IntType(64), "r" if bits == 32 else "l"
        text = f"st.global.L2::cache_hint.b{bits} [$0], $1, $2;"
        kinds = ir.FunctionType(ir.VoidType(), [long, kind, long])
        store = ir.InlineAsm(kinds, text, f"l,{letter},l,~{{memory}}", True)
        builder.call(store, [_far(context, builder, signature, args), args[2], _FIRST])
        return context.get_dummy_value()

    return types.void(array, k, array.dtype), codegen


def _set_far_on_cuda(typingctx, array, k, word):
    def codegen(context, builder, signature, args):
        long = ir.IntType(64)
        kinds = ir.FunctionType(ir.VoidType(), [long, long, long])
        text = "red.global.gpu.relaxed.or.L2::cache_hint.b64 [$0], $1, $2;"
        add = ir.InlineAsm(kinds, text, "l,l,l,~{memory}", True)
        builder.call(add, [_far(context, builder, signature, args), args[2], _LAST])
        return context.get_dummy_value()

    return types.void(array, k, types.uint64), codegen


def _both_on_cuda(typingctx, array, k):
    """One request in place of two."""

    def codegen(context, builder, signature, args):
        long = ir.IntType(64)
        two = ir.LiteralStructType([long, long])
        text = "ld.global.L2::cache_hint.v2.b64 {$0, $1}, [$2], $3;"
        load = ir.InlineAsm(ir.FunctionType(two, [long, long]), text, "=l,=l,l,l,~{memory}", True)
        found = builder.call(load, [_far(context, builder, signature, args), _LAST])
        return context.make_tuple(builder, signature.return_type, [builder.extract_value(found, k) for k in (0, 1)])

    return types.UniTuple(types.uint64, 2)(array, k), codegen


def _put_both_on_cuda(typingctx, array, k, first, second):
    def codegen(context, builder, signature, args):
        long = ir.IntType(64)
        kinds = ir.FunctionType(ir.VoidType(), [long, long, long, long])
        text = "st.global.L2::cache_hint.v2.b64 [$0], {$1, $2}, $3;"
        store = ir.InlineAsm(kinds, text, "l,l,l,l,~{memory}", True)
        builder.call(store, [_far(context, builder, signature, args), args[2], args[3], _LAST])
        return context.get_dummy_value()

    return types.void(array, k, types.uint64, types.uint64), codegen


def _settled_on_cuda(typingctx, array, start):
    """As `settled`; else the optimizer would find out anew, at every access, where shared memory begins."""

    def codegen(context, builder, signature, args):
        from numba.cuda.np.arrayobj import make_array, populate_array

        given, short = make_array(signature.args[0])(context, builder, args[0]), ir.IntType(32)
        kind = given.data.type
        there = builder.addrspacecast(builder.gep(given.data, [args[1]]), ir.PointerType(kind.pointee, 3))
        same = ir.InlineAsm(ir.FunctionType(short, [short]), "mov.b32 $0, $1;", "=r,r")
        kept = builder.inttoptr(builder.call(same, [builder.ptrtoint(there, short)]), there.type)
        made = make_array(signature.return_type)(context, builder)
        count, step = builder.extract_value(given.shape, 0), builder.extract_value(given.strides, 0)
        populate_array(made, builder.addrspacecast(kept, kind), [count], [step], given.itemsize, meminfo=None)
        return made._getvalue()

    return types.Array(array.dtype, 1, "C")(array, types.int64), codegen


def _row_on_cuda(typingctx, array, b):
    """As `row_of`; else the optimizer would add the row to every index, in place of adding it to the address once."""
    row = types.Array(array.dtype, 1, "C")

    def codegen(context, builder, signature, args):
        from numba.cuda.np.arrayobj import make_array, populate_array

        given, long = make_array(signature.args[0])(context, builder, args[0]), ir.IntType(64)
        step, count = builder.extract_value(given.strides, 0), builder.extract_value(given.shape, 1)
        where = builder.add(builder.ptrtoint(given.data, long), builder.mul(args[1], step))
        same = ir.InlineAsm(ir.FunctionType(long, [long]), "mov.b64 $0, $1;", "=l,l")
        kind = given.data.type
        far = builder.inttoptr(builder.call(same, [where]), ir.PointerType(kind.pointee, 1))
        made = make_array(row)(context, builder)
        populate_array(
            made, builder.addrspacecast(far, kind), [count], [builder.extract_value(given.strides, 1)],
            given.itemsize, meminfo=None,
        )  # fmt: skip
        return made._getvalue()

    return row(array, types.int64), codegen


def _either(condition, a, b):
    return a if condition else b


class Target(NamedTuple):
    """What a text is compiled for: a decorator, and what stands in for functions that are not the same everywhere."""

    jit: Callable
    instead: dict[Any, Any]


def loop() -> Target:
    """A loop over threads on the processor."""
    as_here = (
        add_to, row_of, set_in, set_far, clear_in, most_in, barrier, in_turn, all_of, vote, some_of, some_here, here,
        some_still, tell, wait_until, first_of, lane, lanes, from_lane, union_of, most_of, wipe, of, soon, once,
        put_once, both, put_both, settled,
    )  # fmt: skip
    same = {one: counted(one) for one in as_here}
    same |= {lowest_bit: bits.lowest, lowest_bit32: bits.lowest, set_bits: bits.population}
    shifts = {up: intrinsic(_shifted("shl")), down: intrinsic(_shifted("lshr"))}
    return Target(counted, {**same, **shifts, at: intrinsic(_at)})


def compiled(
    function, target: Target, known: dict | None = None, jit: Callable | None = None, names: dict | None = None
):
    """A copy of `function`, of a text, for a target, with copies of all it calls.

    jit: how, if not as these; names: what stands for names of its module, which the compiler then has as constants.
    """
    known = {} if known is None else known
    plain = getattr(function, "py_func", function)
    if plain in known:
        return known[plain]
    names = {**plain.__globals__, **(names or {})}
    asked = {one.argval for one in get_instructions(plain) if one.opname == "LOAD_GLOBAL"}  # attributes left out
    for name in sorted(asked):
        value = names.get(name)
        if isinstance(value, FunctionType | CPUDispatcher) or _hashed(value, target.instead):
            if _hashed(value, target.instead):
                names[name] = target.instead[value]
            elif getattr(value, "of_device", False) or isinstance(value, CPUDispatcher):
                names[name] = compiled(value, target, known)
    copy = FunctionType(plain.__code__, names, plain.__name__, plain.__defaults__, plain.__closure__)
    copy.__module__, copy.__qualname__ = plain.__module__, plain.__qualname__
    known[plain] = (jit or target.jit)(copy)
    return known[plain]


def on_device(function, module: str, names: dict, registers: int):
    """A kernel of a text, compiled for CUDA and kept on disk, `names` of its module as constants."""
    if SIMULATED:
        return compiled(function, on_cuda(), jit=cuda.jit, names=names)
    setattr(config, "CACHE_DIR", cache_folder(module))  # noqa: B010 - no stub knows it

    def jit(copy):
        shape = sha256(repr((registers, names)).encode()).hexdigest()[:16]
        copy.__qualname__ += f"_{shape}"  # kept under a name of its own
        return cuda.jit(cache=True, max_registers=registers)(copy)

    return compiled(function, on_cuda(), jit=jit, names=names)


@cache
def close_by() -> int:
    """Bytes that a block may have close by on this device."""
    if SIMULATED:
        return CLOSE
    return int(getattr(cuda.get_current_device(), "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN", CLOSE))


def launch(kernel, blocks: int, threads: int, close: int, *args) -> None:
    """Launch a kernel in so many blocks of so many threads, with so many bytes close by; with no block, compile it."""
    if kernel not in _READY and not SIMULATED:
        with undisturbed():
            made = kernel.compile(tuple(kernel.typeof_pyval(arg) for arg in args))
        if close > CLOSE:  # a device wants to be asked
            from numba.cuda.cudadrv.driver import binding, driver

            what = binding.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            handle = made._codelibrary.get_cufunc().handle
            driver.cuKernelSetAttribute(what, close, handle, cuda.get_current_device().id)
        _READY.add(kernel)
    if blocks > 0:
        kernel[blocks, threads, 0, close](*args)


_READY: set = set()  # kernels that are compiled, and may have close by what they need


def threads_of(ports: int) -> int:
    """Threads of a block for so many nodes or ports."""
    return min(-(-ports // 32) * 32, THREADS)


def registers_of(threads: int) -> int:
    """Registers that a thread may have where a block has so many."""
    return min(REGISTERS // threads // 8 * 8, MOST_REGISTERS)


def _hashed(value, names) -> bool:
    """Whether it is one of the names: some things have no hash."""
    try:
        return value in names
    except TypeError:
        return False


def on_cuda() -> Target:
    """CUDA, or Numba's simulator of it."""
    jit = cuda.jit(device=True, **({} if SIMULATED else {"forceinline": True}))
    if SIMULATED:
        bit_of, count_of, index, row = lowest_bit, set_bits, at, row_of  # type: Any, Any, Any, Any
        short_bit_of = lowest_bit32
        clock = jit(nanoseconds)
        union, most, wait, show = jit(union_of), jit(most_of), jit(_wait_simulated), jit(_tell_simulated)
        sum_of, pair, put_pair, fixed = jit(of), jit(both), jit(put_both), jit(settled)
        left, right, prefetch, read, write = jit(up), jit(down), jit(soon), jit(once), jit(put_once)
        mark = jit(_set_in_on_cuda)
    else:
        from numba.cuda.extending import intrinsic as on_device

        bit_of, count_of, short_bit_of = jit(_lowest_on_cuda), jit(_set_on_cuda), jit(_lowest32_on_cuda)
        index, row = on_device(_at_on_cuda), on_device(_row_on_cuda)
        union, most = on_device(_union_on_cuda), on_device(_most_of_on_cuda)
        clock = on_device(_nanoseconds_on_cuda)
        seen, shown = on_device(_seen_on_cuda), on_device(_show_on_cuda)

        @jit
        def wait(array, k, least):
            while np.int32(seen(array, k) - least) < 0:
                pass

        @jit
        def show(array, k, value):
            cuda.syncwarp()
            if cuda.laneid == 0:
                shown(array, k, value)

        sum_of, fixed = on_device(_of), on_device(_settled_on_cuda)
        pair, put_pair = on_device(_both_on_cuda), on_device(_put_both_on_cuda)
        left, right = on_device(_shifted("shl")), on_device(_shifted("lshr"))
        prefetch, read, write = on_device(_soon_on_cuda), on_device(_once_on_cuda), on_device(_put_once_on_cuda)
        mark = on_device(_set_far_on_cuda)
    return Target(jit, {
        add_to: jit(_add_on_cuda), set_in: jit(_set_in_on_cuda), set_far: mark, clear_in: jit(_clear_in_on_cuda),
        all_of: jit(_all_on_cuda), vote: jit(_vote_simulated if SIMULATED else _vote_on_cuda),
        **{one: jit(one if SIMULATED else there) for one, there in _TOGETHER.items()},
        nanoseconds: clock, tell: show, wait_until: wait, union_of: union, most_of: most, most_in: jit(_most_on_cuda),
        barrier: jit(_barrier_on_cuda), in_turn: jit(_in_turn_on_cuda), of: sum_of, both: pair, put_both: put_pair,
        settled: fixed, up: left, down: right, soon: prefetch, once: read, put_once: write,
        lowest_bit: bit_of, lowest_bit32: short_bit_of, set_bits: count_of, at: index, row_of: row, bits.lowest: bit_of,
        bits.population: count_of, bits.either: jit(_either),
    })  # fmt: skip


def _add_on_cuda(array, index, value):
    cuda.atomic.add(array, index, value)


def _set_in_on_cuda(array, index, word):
    cuda.atomic.or_(array, index, word)


def _clear_in_on_cuda(array, index, word):
    cuda.atomic.and_(array, index, ~word)


def _all_on_cuda(count, step):
    return step


def _vote_on_cuda(array, row, i, flag):
    some = cuda.ballot_sync(0xFFFFFFFF, flag)
    if some != 0 and i & 31 == 0:
        cuda.atomic.or_(array, row + (i >> 6), np.uint64(np.uint32(some)) << np.uint64(i & 32))


def _vote_simulated(array, row, i, flag):
    if flag:
        cuda.atomic.or_(array, row + (i >> 6), _1 << np.uint64(i & 63))


def _some_on_cuda(flag):
    return cuda.ballot_sync(0xFFFFFFFF, flag) != 0


def _here_on_cuda(flag):
    return cuda.ballot_sync(cuda.activemask(), flag) != 0


def _mask_on_cuda():
    return cuda.activemask()


def _still_on_cuda(mask, flag):
    return cuda.ballot_sync(mask, flag) != 0


def _wipe_on_cuda(array, start, step, count, flag):
    todo = cuda.ballot_sync(0xFFFFFFFF, flag)
    while todo != 0:
        whose = cuda.ffs(todo) - 1
        todo &= todo - 1
        first = cuda.shfl_sync(0xFFFFFFFF, start, whose)
        for k in range(cuda.laneid, count, 32):
            array[first + k * step] = 0
    cuda.syncwarp()


def _first_on_cuda(flag):
    return cuda.ffs(cuda.ballot_sync(0xFFFFFFFF, flag)) - 1


def _lane_on_cuda():
    return cuda.laneid


def _lanes_on_cuda():
    return 32


def _from_lane_on_cuda(value, k):
    return cuda.shfl_sync(0xFFFFFFFF, value, k)


# What 32 threads of a device do together: in the simulator, and in a loop, each is alone.
_TOGETHER = {
    some_of: _some_on_cuda, some_here: _here_on_cuda, here: _mask_on_cuda, some_still: _still_on_cuda,
    first_of: _first_on_cuda, lane: _lane_on_cuda, lanes: _lanes_on_cuda, from_lane: _from_lane_on_cuda,
    wipe: _wipe_on_cuda,
}  # fmt: skip


def _tell_simulated(array, k, value):
    array[k] = value


def _wait_simulated(array, k, least):
    while np.int32(array[k] - least) < 0:
        pass


def _most_on_cuda(array, index, value):
    cuda.atomic.max(array, index, value)


def _barrier_on_cuda():
    cuda.syncthreads()


def _in_turn_on_cuda(orders, phase, k):
    return k


def _lowest_on_cuda(word):
    return np.int64(cuda.ffs(word)) - 1


def _lowest32_on_cuda(word):
    return np.int64(cuda.ffs(np.uint32(word))) - 1


def _set_on_cuda(word):
    return np.int64(cuda.popc(word))
