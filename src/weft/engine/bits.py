"""Machine words as sets of small numbers: for kernels that must not look at what is not there."""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


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
