"""What Numba does not offer and fast kernels need: bit counts, selects, a vector comparison, prefetches."""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array


@intrinsic
def lowest(typingctx, word):
    """Index of the lowest bit of a uint64 that is not zero, as int64."""

    def codegen(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), codegen


@intrinsic
def population(typingctx, word):
    """How many bits of a uint64 are set, as int64."""

    def codegen(context, builder, signature, args):
        return builder.ctpop(args[0])

    return types.int64(types.uint64), codegen


@intrinsic
def either(typingctx, condition, a, b):
    """`a if condition else b` of two integers, as a select: for conditions that no branch predictor can foresee."""

    def codegen(context, builder, signature, args):
        return builder.select(args[0], args[1], args[2])

    if not (condition == types.boolean and isinstance(a, types.Integer) and isinstance(b, types.Integer)):
        return None
    kind = a if a.bitwidth == 64 and not isinstance(a, types.IntegerLiteral) else b
    kind = kind if not isinstance(kind, types.IntegerLiteral) else types.int64
    return kind(types.boolean, kind, kind), codegen


@intrinsic
def at_most(typingctx, array, index, limit):
    """Which of the 8 numbers from element `index` of a contiguous int16 array on are at most `limit`, as a uint64."""

    def codegen(context, builder, signature, args):
        data = make_array(signature.args[0])(context, builder, args[0]).data
        short = ir.IntType(16)
        row = ir.VectorType(short, 8)
        numbers = builder.load(builder.bitcast(builder.gep(data, [args[1]]), row.as_pointer()), align=2)
        one = builder.insert_element(ir.Constant(row, ir.Undefined), builder.trunc(args[2], short), ir.IntType(32)(0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), 8), [0] * 8)
        limits = builder.shuffle_vector(one, ir.Constant(row, ir.Undefined), zeros)
        return builder.zext(builder.bitcast(builder.icmp_signed("<=", numbers, limits), ir.IntType(8)), ir.IntType(64))

    return types.uint64(array, types.int64, types.int64), codegen


@intrinsic
def prefetch(typingctx, array, index):
    """Prefetch the cache line of element `index` of a contiguous array, counted flat; changes nothing."""

    def codegen(context, builder, signature, args):
        data = make_array(signature.args[0])(context, builder, args[0]).data
        byte = ir.IntType(8).as_pointer()
        pointer = builder.bitcast(builder.gep(data, [args[1]]), byte)
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(function, [pointer, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, types.int64), codegen


@intrinsic
def prefetch_at(typingctx, address):
    """Prefetch the cache line of an address, an int64; changes nothing, and any address will do."""

    def codegen(context, builder, signature, args):
        byte = ir.IntType(8).as_pointer()
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(function, [builder.inttoptr(args[0], byte), number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(types.int64), codegen
