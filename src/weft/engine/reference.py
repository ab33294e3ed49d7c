"""Hand a named tuple of arrays from kernel to kernel as one address.

Numba hands a tuple over field by field, seven words and more for each array: a State of fifty arrays is some 400
arguments of every call, which take time to compile and time to run. `by_reference(state)` is one word, and `.name`
reads a field through it. So the entry, which Python calls with the tuple itself, says

    plan, state = by_reference(plan), by_reference(state)

and everything below it looks as if it had the tuple: `state.queue[i]`. With Shoal's kernels, of 58 and 72 arrays, the
first result came after 8.4 s of CPU time instead of 12.6, and 15.9 instead of 25.6; rates stayed.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.core.imputils import impl_ret_borrowed
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, lower_getattr_generic, register_model


class Reference(types.Type):
    """The Numba type of a reference to a named tuple of type `to`."""

    def __init__(self, to):
        self.to = to
        super().__init__(name=f"reference({to})")


@register_model(Reference)
class _Address(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, manager.lookup(kind.to).get_value_type().as_pointer())


@infer_getattr
class _Fields(AttributeTemplate):
    key = Reference

    def generic_resolve(self, reference, name):
        if name in reference.to.fields:
            return reference.to[reference.to.fields.index(name)]


@lower_getattr_generic(Reference)
def _field(context, builder, kind, address, name):
    index = kind.to.fields.index(name)
    value = _load(builder, cgutils.gep_inbounds(builder, address, 0, index))
    return impl_ret_borrowed(context, builder, kind.to[index], value)


def _load(builder, address):
    """The value at an address, loaded word by word.

    Nobody writes to the tuple, so the loads are marked invariant: LLVM then moves them out of loops, which it could not
    do past a store that might change what they read.
    """
    kind = address.type.pointee
    if not isinstance(kind, ir.Aggregate):
        word = builder.load(address)
        word.set_metadata("invariant.load", builder.module.add_metadata([]))
        return word
    value = ir.Constant(kind, ir.Undefined)
    for k in range(len(kind.elements)) if isinstance(kind, ir.BaseStructType) else range(kind.count):
        value = builder.insert_value(value, _load(builder, cgutils.gep_inbounds(builder, address, 0, k)), k)
    return value


@intrinsic
def by_reference(typing, whole):
    """A reference to a named tuple, valid while the function that makes it runs."""

    def build(context, builder, signature, arguments):
        place = cgutils.alloca_once_value(builder, arguments[0])
        # An empty instruction hides where the address comes from: an invariant load may otherwise be moved before the
        # store that has just been made.
        hide = ir.FunctionType(place.type, [place.type])
        return builder.asm(hide, "", "=r,0,~{memory}", [place], side_effect=True)

    if isinstance(whole, types.BaseNamedTuple):
        return Reference(whole)(whole), build
