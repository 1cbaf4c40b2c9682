"""What the text of a graph may name: functions on arrays of the frameworks, and what the caller allows besides.

In comes a dotted name, out goes the object, or a ``NotAllowed`` that says what to allow. Each framework has a list of
the modules whose public functions only calculate; what reads or writes files, loads code or starts programs is in none
of them, and has to be allowed by its full name. The same holds for methods and attributes by which Python reaches from
any object to everything else. ``clew.parse`` and ``clew.load`` both ask here. Asking runs nothing.
"""

from __future__ import annotations

import builtins
import inspect
import re
from collections.abc import Iterable, Iterator
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from clew.errors import NotAllowed
from clew.ir.effects import is_known
from clew.ir.format import qualified_name
from clew.ir.guards import Call, Guard
from clew.ir.names import NotFound, find
from clew.ir.node import Node
from clew.ir.pickling import Missing

FRAMEWORKS = ("torch", "numpy", "jax", "tensorflow")
_ALWAYS = ("numpy", "operator", "_operator", "math", "collections", "functools", "builtins", "typing", "clew")
"""Packages that graphs of all frameworks name."""
_BUILTINS = frozenset(
    "abs all any bool bytes bytearray complex dict divmod enumerate filter float format frozenset getattr hasattr int "
    "isinstance issubclass iter len list map max min next object pow print range repr reversed round set setattr "
    "slice sorted str sum tuple type zip".split()
)
_MODULES = {
    "torch": frozenset(
        "Tensor Size Generator finfo iinfo device dtype autocast no_grad enable_grad inference_mode set_grad_enabled "
        "memory_format layout SymInt SymFloat SymBool nn functional fft linalg special sparse nested signal masked "
        "func autograd amp random return_types types distributions optim quantization overrides compiler _VF _tensor "
        "_dynamo._trace_wrapped_higher_order_op.ModIndex "
        "_functorch _higher_order_ops _linalg_utils _lobpcg _lowrank _C._nn _C._fft _C._linalg _C._special "
        "_C._sparse _C._nested _C._VariableFunctions _C._VariableFunctionsClass _C.TensorBase _C._TensorBase "
        "_C.Generator _C._functorch "
        "_C._set_grad_enabled _C.LinAlgError _C.DisableTorchFunctionSubclass "
        "ops.aten ops.prims ops.quantized ops.quantized_decomposed ops.torchvision ops.higher_order ops.mkldnn "
        "ops.sparse ops.rngprims _ops.aten _ops.prims _ops.quantized _ops.OpOverload _ops.OpOverloadPacket "
        "cuda.amp cuda.random cuda.is_available cuda.device_count cuda.current_device cuda.synchronize cuda.Stream "
        "cuda.current_stream cuda.stream cuda.get_device_capability cuda.is_bf16_supported cuda.FloatTensor "
        "backends.cuda backends.cudnn backends.mps backends.mkldnn backends.opt_einsum backends.mha "
        "ao.nn ao.quantization.fake_quantize ao.quantization.observer ao.quantization.stubs ao.quantization.qconfig "
        "utils.checkpoint utils.dlpack utils._pytree jit.is_scripting jit.is_tracing jit._trace.is_tracing "
        "_jit_internal.is_scripting _jit_internal.boolean_dispatch _utils.is_compiling".split()
    ),
    "numpy": frozenset(
        "linalg fft random ma polynomial char strings emath ndarray ufunc dtype matrix lib.stride_tricks lib.scimath "
        "lib.mixins lib.array_utils _core core exceptions matrixlib lib._function_base_impl lib._arraypad_impl "
        "lib._arraysetops_impl lib._index_tricks_impl lib._nanfunctions_impl lib._polynomial_impl "
        "lib._shape_base_impl lib._stride_tricks_impl lib._twodim_base_impl lib._type_check_impl lib._ufunclike_impl "
        "lib._histograms_impl lib._scimath_impl lib._array_utils_impl".split()
    ),
    "jax": frozenset(
        "numpy lax nn random scipy tree_util tree ops image dtypes Array typing custom_derivatives custom_batching "
        "ad_checkpoint _src.numpy _src.lax _src.nn _src.random _src.scipy _src.tree_util _src.ops _src.image "
        "_src.dtypes _src.basearray _src.array _src.custom_derivatives _src.custom_batching _src.ad_checkpoint "
        "_src.api _src.pjit _src.prng _src.core _src.literals _src.typing _src.interpreters _src.tree".split()
    ),
    "tensorflow": frozenset(
        "math linalg nn random signal image sets bitwise dtypes sparse ragged strings quantization raw_ops "
        "experimental.numpy nest python.ops python.framework python.eager.polymorphic_function python.util.nest "
        "autograph.experimental Tensor Variable".split()
    ),
    "clew": frozenset(
        "cond for_loop while_loop choose guard any_of with_item fitted ir.control_flow ir.guards ir.spellings capture "
        "frameworks io.exported io.torchscript_operators passes.recognize passes.quantize.Int8Linear "
        "passes.quantize.Int8Convolution passes.quantize.RangeObserver runtime.parts.Part "
        "runtime.parts.CapturedPart".split()
    ),
}
"""The modules of each framework, and single names in others, whose public members calculate and do no more."""
_TOP_LEVEL_PRIVATE = re.compile(r"_(assert|check\w*|sym_\w+|foreach_\w+|constrain_as_\w+|shape_as_tensor)\Z")
_OUTWARD = frozenset(
    "torch.compile torch.fork torch.wait torch.hub torch.import_ir_module torch.import_ir_module_from_buffer "
    "torch.parse_ir torch.parse_schema torch.parse_type_comment torch.CompilationUnit torch.FileCheck "
    "torch.PyTorchFileReader torch.PyTorchFileWriter torch.ScriptModule torch.ScriptModuleSerializer "
    "torch.ScriptMethod torch.ScriptFunction torch.LiteScriptModule torch.StaticModule torch.ThroughputBenchmark "
    "torch.get_file_path torch.prepare_multiprocessing_environment torch.autograd.profiler torch.compiler.compile "
    "torch.autograd.profiler_util torch.autograd.profiler_legacy torch.nn.parallel torch.quantization.quantize_fx "
    "torch.compiler.config torch.compiler.save_cache_artifacts torch.compiler.load_cache_artifacts "
    "torch._functorch.aot_autograd torch._functorch.partitioners torch._functorch.config torch._functorch.compilers "
    "torch._functorch._aot_autograd torch._functorch.benchmark_utils torch._functorch.fx_minifier "
    "torch.overrides.TorchFunctionMode "
    "numpy.show_config numpy.DataSource numpy.f2py numpy.ctypeslib numpy.testing numpy._core.records "
    "numpy._core.cversions numpy._core._methods numpy.random._pickle "
    "jax.profiler jax.distributed jax.experimental jax.monitoring jax.debug jax.pure_callback jax.export "
    "tensorflow.py_function tensorflow.numpy_function tensorflow.load_op_library tensorflow.load_library "
    "tensorflow.python.ops.script_ops tensorflow.python.ops.io_ops tensorflow.python.ops.gen_io_ops "
    "tensorflow.python.framework.load_library tensorflow.python.ops.gen_script_ops "
    "tensorflow.python.ops.gen_dataset_ops tensorflow.python.ops.gen_experimental_dataset_ops "
    "tensorflow.python.ops.gen_debug_ops tensorflow.python.ops.gen_summary_ops "
    "operator.attrgetter operator.methodcaller _operator.attrgetter _operator.methodcaller "
    "typing.get_type_hints typing.ForwardRef "
    "clew.save clew.load clew.trace clew.symbolic_trace clew.trace_graph clew.trace_module clew.parse clew.wrap".split()
)
"""Names below those modules that reach beyond arrays nevertheless."""
_OF_CLEW = frozenset(
    "attempt attempt_method outcome_of outcome_of_method raise_error raise_if assign assign_buffer remove "
    "set_attribute draw draw_from shuffled at_update hand_out set_flat_item take_step remember write_variable "
    "print_to log warn follows_from_sizes ClosedOver Part CapturedPart Default CallVariables Int8Linear "
    "Int8Convolution RangeObserver".split()
)
"""Functions and classes of Clew's that graphs name, besides functions whose effects are declared."""
_FILES = frozenset(
    "load save savez savez_compressed savetxt loadtxt genfromtxt fromregex fromfile from_file tofile memmap dump dumps "
    "open_memmap load_library load_state_dict_from_url".split()
)
"""Last parts of names, and methods, that read or write files in all of the frameworks."""
_RAW_OUTWARD = re.compile(
    r"File|Save|Restore|Checkpoint|Dataset|Iterator|Reader|Summary|PyFunc|Print|Debug|Send|Recv|Rpc|Server|Remote|Tpu|TPU"
    r"|Load|Dump|Collective|Host|Configur|Disk"
)
"""Operations of TensorFlow by their names that reach beyond arrays."""
_REACHING = frozenset(
    "__class__ __reduce__ __reduce_ex__ __getattribute__ __getattr__ __init_subclass__ __subclasses__ __globals__ "
    "__dict__ __builtins__ __code__ __closure__ __self__ __func__ __mro__ __bases__ __base__ __call__ __setattr__ "
    "__delattr__ __new__ __init__ __import__ __loader__ __spec__ __setstate__ __getstate__ __dir__ __wrapped__ "
    "__module__ __defaults__ __kwdefaults__ __weakref__ __subclasshook__ __class_getitem__ __torch_function__ "
    "__array_function__ __array_ufunc__ gi_frame f_globals f_builtins f_locals tb_frame cr_frame ag_frame func_globals "
    "from_file tofile dump dumps save _write_file _set_from_file _new_with_file _share_filename_cpu_ "
    "_new_shared_filename_cpu".split()
)
"""Methods and attributes that lead from an object to code, or to a file."""
_BY_NAME = (getattr, setattr, hasattr)
_NAMING = frozenset(("package", "name", "path"))
"""Parameters of Clew's functions that are names of attributes or packages, or paths of attributes."""


class Permissions:
    """What one text may name: functions of ``packages``, and what ``allow`` names, packages or full names.

    ``call`` is how the caller passes more.
    """

    def __init__(self, allow: Iterable[str], call: str, packages: Iterable[str] = ()) -> None:
        self.allow = tuple(allow)
        self.records: dict[str, Any] = {}
        """Classes of records that stand for those which may not be named."""
        self.missing: list[str] | None = None
        """The functions that were left out, if that is all right."""
        self._call = call
        self._packages = {one.partition(".")[0] for one in self.allow} | {*_ALWAYS, *packages}
        self._found: dict[str, Any] = {}
        """What was found by now: large models name the same few classes and functions again and again."""

    def left_out(self, name: str) -> Any:
        """What stands for a function that a branch or loop calls and that may not be named: it raises when it is
        called. None for what may be named, and where nothing may be left out."""
        if self.missing is None or self._is_allowed(name) or name.partition(".")[0] in self._packages:
            return None
        self.missing.append(name)
        return Missing(name, self._fix(name))

    def find(self, name: str) -> Any:
        """The object with a dotted name."""
        if name not in self._found:
            self._found[name] = self._looked_up(name)
        return self._found[name]

    def _looked_up(self, name: str) -> Any:
        if not self._is_allowed(name):
            if name in self.records:
                return self.records[name]
            raise self.refused(name)
        try:
            found = find(name, [name.partition(".")[0]])
        except NotFound:
            if name in self.records:
                return self.records[name]
            raise
        if isinstance(found, ModuleType) or (name not in self.allow and not self._is_at_home(name, found)):
            raise self.refused(name)
        return found

    def value(self, name: str) -> Any:
        """The object with a dotted name as a value: whoever calls it may pass arguments that nobody has looked at."""
        found = self.find(name)
        if _takes_names(found) and name not in self.allow:
            raise self.refused(name)
        return found

    def _is_allowed(self, name: str) -> bool:
        package, _, rest = name.replace("tensorflow._api.v2.", "tensorflow.").partition(".")
        if name in self.allow:
            return True
        if package not in self._packages or not _REACHING.isdisjoint(rest.split(".")):
            return False
        if package == "builtins":
            return _is_plain(rest)
        if package in _MODULES:
            return _calculates(package, rest)
        if package == "functools":
            return rest in ("partial", "reduce")
        return name not in _OUTWARD

    def _is_at_home(self, name: str, found: Any) -> bool:
        """Whether an object is of the allowed modules, not what they have imported from elsewhere."""
        last = name.rpartition(".")[2]
        if name.startswith("clew."):
            return not callable(found) or last in _OF_CLEW or is_known(found)
        for home in (_owner(name, found), getattr(found, "__module__", None)):
            if isinstance(home, str) and home not in _INNER and not self._is_allowed(f"{home}.{last}"):
                return False
        return True

    def check(self, part: Node | Guard) -> None:
        """Raise if a node or a guard of a graph reaches for more than arrays."""
        if isinstance(part, Guard):
            self._check_subject(part.subject)
            self._check_values(part.expected)
            return
        if part.op == "call_method":
            self._check_member(str(part.target))
        elif part.op == "call_function":
            self._check_call(part.target, part.args, part.kwargs)
        self._check_values((part.args, part.kwargs))

    def _check_subject(self, subject: Any) -> None:
        if isinstance(subject, Call):
            if isinstance(subject.function, str):
                self._check_member(subject.function)
            else:
                self._check_call(subject.function, subject.args, {})
            for part in subject.args:
                self._check_subject(part)
        else:
            self._check_values(subject)

    def _check_values(self, values: Any) -> None:
        for value in _leaves(values):
            if _takes_names(value) and qualified_name(value) not in self.allow:
                raise self.refused(qualified_name(value))

    def _check_call(self, function: Any, args: tuple[Any, ...], kwargs: Any) -> None:
        """Look at the names of attributes and methods that a function takes as text."""
        if function in _BY_NAME:
            names = {"name": args[1] if len(args) > 1 else None}
        elif str(getattr(function, "__module__", "")).startswith("clew."):
            names = _names_given(function, args, kwargs)
        else:
            return
        written = [name for name in names.values() if isinstance(name, str)]
        full = qualified_name(function)
        if len(written) < len(names) and full not in self.allow:
            raise NotAllowed("the graph uses an attribute whose name is not written in it", fixes=(self._fix(full),))
        if "package" in names:
            self.find(f"{names['package']}.{names['name']}")
        for part in ".".join(written).split("."):
            self._check_member(part)

    def _check_member(self, name: str) -> None:
        if name in _REACHING and name not in self.allow:
            raise NotAllowed(
                f"the graph uses {name}, by which a program reaches beyond its arrays", fixes=(self._fix(name),)
            )

    def has_named(self, module: str) -> bool:
        """Whether the caller allows a module that is no framework's, or a package around it."""
        parts = module.split(".")
        return any(".".join(parts[:count]) in self.allow for count in range(1, len(parts) + 1)) and (
            parts[0] not in FRAMEWORKS or module in self.allow
        )

    def refused(self, name: str) -> NotAllowed:
        """The error for a name that is not allowed."""
        named = ", ".join(sorted(self._packages - {"_operator"}))
        return NotAllowed(
            f"the graph names {name}, which is not allowed",
            why=f"calling the graph would run it; what may be named are functions on arrays of {named}",
            fixes=(self._fix(name),),
        )

    def _fix(self, name: str) -> str:
        names = ", ".join(map(repr, (*self.allow, name)))
        return f"if you trust it: {self._call}, allow=({names},))"


_INNER = ("functools", "jaxlib")
"""Modules in which frameworks keep what they show under names of their own."""


def _takes_names(value: Any) -> bool:
    """Whether a value is a function that reaches attributes by names which whoever calls it passes."""
    if isinstance(value, FunctionType) and value.__module__.startswith("clew."):
        return not _NAMING.isdisjoint(inspect.signature(value).parameters)
    return isinstance(value, BuiltinFunctionType) and value in _BY_NAME


def _names_given(function: Any, args: tuple[Any, ...], kwargs: Any) -> dict[str, Any]:
    """What a function of Clew's takes as the name of an attribute or a package, or as a path of attributes."""
    try:
        given = inspect.signature(function).bind_partial(*args, **kwargs).arguments
    except (TypeError, ValueError):  # a function of C, or a call that fails
        return {}
    return {name: given[name] for name in _NAMING if name in given}


def _is_plain(name: str) -> bool:
    first = name.partition(".")[0]
    known = getattr(builtins, first, None)
    is_error = isinstance(known, type) and issubclass(known, Exception)
    return is_error or first in _BUILTINS or not hasattr(builtins, first)


def _calculates(package: str, rest: str) -> bool:
    """Whether a name below a framework is of a module, or in the framework's own namespace, that only calculates."""
    parts = rest.split(".")
    paths = [".".join(parts[:count]) for count in range(1, len(parts) + 1)]
    if parts[-1] in _FILES or any(f"{package}.{path}" in _OUTWARD for path in paths):
        return False
    if package == "tensorflow" and parts[0] == "raw_ops" and _RAW_OUTWARD.search(parts[-1]):
        return False
    if not _MODULES[package].isdisjoint(paths):
        return True
    if package == "numpy" and len(parts) == 2 and parts[1] in _UFUNC:
        return True
    return len(parts) == 1 and _is_public(package, parts[0])


_UFUNC = ("at", "reduce", "reduceat", "accumulate", "outer")


def _is_public(package: str, name: str) -> bool:
    if not name.startswith("_"):
        return package != "clew"
    return package == "torch" and (bool(_TOP_LEVEL_PRIVATE.match(name)) or _is_operation(name))


def _is_operation(name: str) -> bool:
    try:
        find(f"torch._C._VariableFunctions.{name}")
    except NotFound:
        return False
    return True


def _owner(name: str, found: Any) -> str | None:
    """The name of the module or class from which a name takes its last part, whatever the way to it is called."""
    owner = find(name.rpartition(".")[0], [name.partition(".")[0]])
    if isinstance(owner, ModuleType):
        return owner.__name__
    return f"{owner.__module__}.{owner.__qualname__}" if isinstance(owner, type) else None


def _leaves(value: Any) -> Iterator[Any]:
    """The functions in an argument."""
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from _leaves(part)
    elif isinstance(value, dict):
        yield from _leaves((*value.keys(), *value.values()))
    elif isinstance(value, slice):
        yield from _leaves((value.start, value.stop, value.step))
    elif isinstance(value, (BuiltinFunctionType, FunctionType)):
        yield value
