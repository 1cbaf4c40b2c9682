"""What a file may name: functions and classes of the packages that the caller allows, without those that reach out.

In comes a dotted name from a file, out goes the object, or a ``BundleError`` that says what to allow. A package stands
for its functions on arrays; those that read or write files, load code, or start programs have to be allowed by their
full names. The same holds for methods and attributes by which plain Python reaches from any object to everything else.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from types import ModuleType
from typing import Any

from clew.errors import BundleError
from clew.ir import lookup
from clew.ir.arguments import all_nodes
from clew.ir.graph import Graph
from clew.ir.guards import Call, Guard

_ALWAYS = ("numpy", "operator", "_operator", "math", "collections", "builtins", "clew")
"""Packages that graphs of all frameworks name."""
_BUILTINS = frozenset(
    "abs all any bool bytes complex dict divmod enumerate filter float format frozenset getattr hasattr int isinstance "
    "issubclass iter len list map max min next pow range repr reversed round set setattr slice sorted str sum tuple "
    "type zip".split()
)
_OUTWARD = frozenset(
    "torch.load torch.save torch.hub torch.package torch.jit.load torch.jit.save torch.jit.script torch.jit.trace "
    "torch.jit.trace_module torch.jit.freeze torch.jit.CompilationUnit torch.jit.ScriptModule torch.jit._serialization "
    "torch.jit._script torch.jit._recursive torch.jit.frontend torch.ops.load_library torch.classes "
    "torch.utils.cpp_extension "
    "torch.utils.data torch.utils.model_zoo torch.utils.collect_env torch.utils.bundled_inputs "
    "torch.multiprocessing torch.distributed torch.from_file torch.serialization torch.onnx torch.library torch.export "
    "torch.compile torch._inductor torch._dynamo torch.testing torch.profiler torch.os torch.sys torch.importlib "
    "torch.storage torch.cuda.memory torch._C._jit torch._C._load_for_lite_interpreter torch._C.import_ir_module "
    "numpy.load numpy.save numpy.savez numpy.savez_compressed numpy.savetxt numpy.loadtxt numpy.genfromtxt "
    "numpy.fromfile numpy.fromregex numpy.memmap numpy.lib.npyio numpy.lib.format numpy.lib._npyio_impl "
    "numpy.lib._datasource numpy.lib.introspect numpy.f2py numpy.ctypeslib numpy.testing "
    "numpy.ndarray.tofile numpy.ndarray.dump numpy.distutils "
    "jax.numpy.load jax.numpy.save jax.numpy.savez jax.numpy.fromfile jax.profiler jax.distributed jax.experimental "
    "jax.monitoring jax.debug jax.pure_callback jax.export "
    "tensorflow.io tensorflow.saved_model tensorflow.py_function tensorflow.numpy_function tensorflow.data "
    "tensorflow.train tensorflow.load_op_library tensorflow.load_library tensorflow.raw_ops tensorflow.compat "
    "tensorflow.keras tensorflow.summary tensorflow.profiler tensorflow.distribute tensorflow.python "
    "operator.attrgetter operator.methodcaller _operator.attrgetter _operator.methodcaller "
    "clew.io clew.tools clew.runtime clew.api clew.save clew.load clew.capture.python clew.fx clew.trace "
    "clew.symbolic_trace clew.trace_graph clew.trace_module".split()
)
"""Names, and packages, that read or write files, load code, start programs, or work on what is no array."""
_HARMLESS = (
    "clew.runtime.parts.Part", "clew.runtime.parts.CapturedPart", "clew.capture.python.environment.environment",
)  # fmt: skip
"""The classes of the modules that merely hold the parts of a captured module; what reads a variable of the process."""
_REACHING = frozenset(
    "__class__ __reduce__ __reduce_ex__ __getattribute__ __getattr__ __init_subclass__ __subclasses__ __globals__ "
    "__dict__ __builtins__ __code__ __closure__ __self__ __func__ __mro__ __bases__ __base__ __call__ __setattr__ "
    "__delattr__ __new__ __init__ __import__ __loader__ __spec__ __setstate__ __getstate__ __dir__ __wrapped__ "
    "__module__ __defaults__ __kwdefaults__ __weakref__ __subclasshook__ __class_getitem__ __torch_function__ "
    "__array_function__ __array_ufunc__ gi_frame f_globals f_builtins f_locals tb_frame cr_frame ag_frame func_globals "
    "tofile dump dumps".split()
)
"""Methods and attributes that lead from an object to code, or to a file."""


class Permissions:
    """What one file may name; ``allow`` are packages, or full names of functions and classes."""

    def __init__(self, allow: Iterable[str]) -> None:
        self.allow = tuple(allow)
        self.records: dict[str, Any] = {}
        """Classes of records that stand for those which may not be named."""

    def find(self, name: str) -> Any:
        """The object with a dotted name."""
        package = name.partition(".")[0]
        if not self._is_allowed(name, package):
            if name in self.records:
                return self.records[name]
            raise self._refused(name)
        try:
            found = lookup.find(name, [package])
        except lookup.NotFound as error:
            if name in self.records:
                return self.records[name]
            raise BundleError(f"the file names {name}, which is not found here: {error}") from error
        if isinstance(found, ModuleType) or (name not in self.allow and not self._is_at_home(name, found)):
            raise self._refused(name)
        return found

    def _is_allowed(self, name: str, package: str) -> bool:
        if name in self.allow:
            return True
        if package == "builtins":
            known = getattr(builtins, name.rpartition(".")[2], None)
            is_error = isinstance(known, type) and issubclass(known, Exception)
            return name.count(".") == 1 and (is_error or name.partition(".")[2] in _BUILTINS)
        return package in (*_ALWAYS, *map(_root, self.allow)) and not _reaches_out(name)

    def _is_at_home(self, name: str, found: Any) -> bool:
        """Whether an object is one of the allowed packages, not what they have imported from elsewhere."""
        home = getattr(found, "__module__", None)
        if not isinstance(home, str):
            return True
        known = (*_ALWAYS, *_INNER, *map(_root, self.allow))
        return _root(home) in known and not _reaches_out(f"{home}.{name.rpartition('.')[2]}")

    def check(self, graph: Graph) -> None:
        """Raise if the calls and guards of a graph reach for more than arrays."""
        for node in all_nodes(graph):
            if node.op == "call_method":
                self._check_member(str(node.target))
            elif node.op == "call_function" and node.target in _BY_NAME:
                self._check_read(node.args)
            for one in node.graph.guards.entry if node.op == "output" else ():
                self._check_guard(one)

    def _check_guard(self, one: Guard) -> None:
        waiting: list[Any] = [one.subject]
        while waiting:
            found = waiting.pop()
            if isinstance(found, Call):
                waiting += found.args
                if isinstance(found.function, str):
                    self._check_member(found.function)
                elif found.function in _BY_NAME:
                    self._check_read(found.args)

    def _check_read(self, args: tuple[Any, ...]) -> None:
        if len(args) < 2 or not isinstance(args[1], str):
            raise BundleError("the graph reads an attribute whose name is not written in the file")
        self._check_member(args[1])

    def _check_member(self, name: str) -> None:
        if name in _REACHING and name not in self.allow:
            raise BundleError(
                f"the graph uses {name}, by which a program reaches beyond its arrays",
                fixes=(f"if you trust the file: load(path, allow=(..., {name!r}))",),
            )

    def _refused(self, name: str) -> BundleError:
        return BundleError(
            f"the graph names {name}, which is not allowed",
            why=f"a file may name functions on arrays of {', '.join(self.allow) or 'no package'}",
            fixes=(f"if you trust the file: load(path, allow=({', '.join(map(repr, (*self.allow, name)))},))",),
        )


_INNER = ("jaxlib", "functools")
"""Packages in which frameworks keep what they show under names of their own."""
_BY_NAME = (getattr, setattr, hasattr)


def _root(name: str) -> str:
    return name.partition(".")[0]


def _reaches_out(name: str) -> bool:
    """Whether a name, or a package on the way to it, is one of those that have to be allowed by their full names."""
    if name in _HARMLESS:
        return False
    parts = name.split(".")
    is_outward = any(".".join(parts[:count]) in _OUTWARD for count in range(1, len(parts) + 1))
    return is_outward or not _REACHING.isdisjoint(parts)
