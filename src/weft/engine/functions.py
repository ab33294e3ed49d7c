"""Functions as an argument of kernels' parts, so that one loop serves many protocols and networks.

Numba compiles a part anew for every `Functions` it is called with, as it does for every type of array, and calls them
directly. At run time nothing is passed. Where Numba's own tuples of functions pass the addresses of Python objects, a
kernel that holds them cannot be kept in the cache.

    class Shape(Functions):
        area: Any  # (s) -> int

    SQUARE = Shape(area=area_of_square)  # a `part`, or any other compiled function

    @part
    def twice(s, shape):
        return 2 * shape.area(s)
"""

from llvmlite import ir
from numba import types
from numba.core.datamodel.models import OpaqueModel
from numba.core.imputils import lower_constant, lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, register_model, typeof_impl


class Functions:
    """Some functions by name: all those that the class annotates."""

    def __init__(self, **functions):
        assert functions.keys() == type(self).__annotations__.keys(), sorted(functions)
        vars(self).update(functions)


class FunctionsType(types.Opaque):
    """The type of one `Functions`, of which there is one value."""

    def __init__(self, functions: Functions):
        self.functions = functions
        names = ",".join(f"{f.py_func.__module__}.{f.py_func.__name__}" for f in vars(functions).values())
        super().__init__(f"{type(functions).__name__}({names})")


@typeof_impl.register(Functions)
def _typeof(value, context):
    return FunctionsType(value)


register_model(FunctionsType)(OpaqueModel)


@infer_getattr
class _Attributes(AttributeTemplate):
    key = FunctionsType

    def generic_resolve(self, type_, name):
        function = getattr(type_.functions, name, None)
        return None if function is None else types.Dispatcher(function)


@lower_getattr_generic(FunctionsType)
def _getattr(context, builder, type_, value, name):
    return context.get_dummy_value()


@lower_constant(FunctionsType)
def _constant(context, builder, type_, value):
    return ir.Constant(context.get_value_type(type_), None)
