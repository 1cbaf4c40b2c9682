"""A captured program as plain Python that needs its framework and nothing else: ``captured.to_python("folder")``.

In comes a capture; out goes a folder with ``model.py`` and ``weights.safetensors``. ``load()`` of that file gives the
program: a module of PyTorch for a captured module, a function otherwise. Guards are ``assert`` lines where they are
about arguments and attributes; those on variables of the capturing process are left out and listed. Functions of Clew
that the graph calls are written out with what they use. What cannot be written is refused, and nothing is left behind.
"""

from __future__ import annotations

import copy
import importlib
import os
import pprint
import re
import sys
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, ModuleType, SimpleNamespace
from typing import Any

import numpy

from clew.capture.recording.outputs import rebuild
from clew.capture.state.slots import ROOT
from clew.errors import CodegenError, MissingFramework
from clew.ir.arguments import all_nodes
from clew.ir.graph import Graph
from clew.ir.guards import Attribute, Call, Guard, attribute_paths, guard
from clew.ir.names import name_for
from clew.ir.node import Node
from clew.ir.pickling import shape_of_class
from clew.runtime.embedded_source import Embedded, is_outside

MODEL, WEIGHTS = "model.py", "weights.safetensors"
_FOLDER = "clew.runtime.folder"  # imports torch, so it waits until there is a module
_STRUCTURE = frozenset(
    "_parameters _buffers _modules _non_persistent_buffers_set training _backward_pre_hooks _backward_hooks "
    "_is_full_backward_hook _forward_hooks _forward_hooks_with_kwargs _forward_hooks_always_called _forward_pre_hooks "
    "_forward_pre_hooks_with_kwargs _state_dict_hooks _state_dict_pre_hooks _load_state_dict_pre_hooks "
    "_load_state_dict_post_hooks".split()
)
_HOOKS = tuple(name for name in _STRUCTURE if name.endswith("hooks"))
_FORMS = {"length": "len({}) == {}", "keys": "tuple({}) == {}", "either": "{} in {}", "type": "type({}) is {}"}
_READER = '''
_FORMATS = {"BOOL": "bool", "U8": "uint8", "I8": "int8", "I16": "int16", "U16": "uint16", "I32": "int32",
            "U32": "uint32", "I64": "int64", "U64": "uint64", "F16": "float16", "BF16": "bfloat16", "F32": "float32",
            "F64": "float64",
            "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "C64": "complex64"}


def _stored():
    """The arrays of weights.safetensors, by name."""
    content = bytearray((pathlib.Path(__file__).parent / "weights.safetensors").read_bytes())
    (size,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8 : 8 + size])
    header.pop("__metadata__", None)
    found = {name: _array(content, 8 + size + entry["data_offsets"][0], entry) for name, entry in header.items()}
    return found | {name: found[home] for name, home in _SHARED.items()}

'''
_TORCH_ARRAY = '''
def _array(content, start, entry):
    dtype, count = getattr(torch, _FORMATS[entry["dtype"]]), math.prod(entry["shape"])
    if not count:
        return torch.empty(entry["shape"], dtype=dtype)
    found = torch.frombuffer(content, dtype=torch.uint8, offset=start, count=count * dtype.itemsize)
    return found.clone().view(dtype).reshape(entry["shape"])


def _put(root, path, value, arrays=None):
    """Put a module, a tensor or a plain value at a path; a module gets its weights."""
    *holders, last = path.split(".")
    for name in holders:
        if name not in root._modules:
            root.add_module(name, torch.nn.Module())
        root = root._modules[name]
    if isinstance(value, torch.nn.Module) and arrays is not None:
        for inner, part in value.named_modules(prefix=path):
            for name in [*part._parameters, *part._buffers]:
                if f"{inner}.{name}" in arrays:
                    setattr(part, name, arrays[f"{inner}.{name}"])
    if isinstance(value, torch.Tensor) and not isinstance(value, torch.nn.Parameter):
        root.register_buffer(last, value)
    else:
        setattr(root, last, value)


def _bare(kind, attributes, parameters, buffers, modules):
    """A module of a class, made of what it holds."""
    made = kind.__new__(kind)
    torch.nn.Module.__init__(made)
    vars(made).update(attributes)
    made._parameters.update(parameters)
    made._buffers.update(buffers)
    made._modules.update(modules)
    return made

'''
_NUMPY_ARRAY = '''
def _array(content, start, entry):
    dtype = numpy.dtype(_FORMATS[entry["dtype"]])
    return numpy.frombuffer(content, dtype, math.prod(entry["shape"]), start).reshape(entry["shape"]).copy()


def _put(root, path, value):
    """Put a value at a path."""
    *holders, last = path.split(".")
    for name in holders:
        if not hasattr(root, name):
            setattr(root, name, types.SimpleNamespace())
        root = getattr(root, name)
    setattr(root, last, value)

'''
_RECORD = '''
class _Record(dict):
    """What the program returns, in place of a class that is not part of the framework: items are attributes, too."""

    def __getitem__(self, key):
        return list(self.values())[key] if isinstance(key, (int, slice)) else dict.__getitem__(self, key)

    def __getattr__(self, name):
        try:
            return dict.__getitem__(self, name)
        except KeyError:
            raise AttributeError(name) from None

'''


def to_python(captured: Any, folder: str | os.PathLike[str], *, guards: bool = True) -> None:
    """Write a captured program to a folder, as Python that runs without Clew.

    ``model.py`` has the program, and ``load()`` in it gives it; the weights lie beside, as safetensors. Guards become
    plain asserts; with ``guards=False`` they are left out, and other inputs than the example's may give other results
    than the original.
    """
    if not isinstance(getattr(captured, "graph", None), Graph) or not hasattr(captured, "code"):
        raise CodegenError(
            f"a {type(captured).__name__} has no single graph to write",
            fixes=("capture with an example: clew.trace(fn, args)",),
        )
    writer = _Writer(captured, guards)
    text = writer.text()
    target = Path(folder)
    if target.exists() and not target.is_dir():
        raise CodegenError(f"{target} is a file, and a program is written to a folder", fixes=["name a folder"])
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target) as scratch:
        (Path(scratch) / MODEL).write_text(text, encoding="utf-8")
        _save(writer.arrays, Path(scratch) / WEIGHTS)
        for name in (MODEL, WEIGHTS):
            os.replace(Path(scratch) / name, target / name)


def _save(arrays: dict[str, Any], path: Path) -> None:
    is_torch = "torch" in sys.modules and any(isinstance(one, sys.modules["torch"].Tensor) for one in arrays.values())
    try:
        library = importlib.import_module("safetensors.torch" if is_torch else "safetensors.numpy")
    except ImportError as error:
        raise MissingFramework("writing needs the package safetensors", fixes=["pip install safetensors"]) from error
    library.save_file(arrays, str(path))


class _Writer:
    """Writes one program."""

    def __init__(self, captured: Any, guards: bool) -> None:
        torch = sys.modules.get("torch")
        self._torch: Any = torch
        self._is_module = torch is not None and isinstance(captured, torch.nn.Module)
        self._framework = str(getattr(type(captured), "framework", "")) or ("numpy" if torch is None else "torch")
        if self._framework == "tensorflow":
            raise _refused("a captured program of TensorFlow", "its variables live in TensorFlow's own containers")
        self._root = captured if self._is_module else captured.root
        self._name = re.sub(r"\W", "_", type(captured).__name__ if self._is_module else captured.__name__)
        self._graph = copy.deepcopy(captured.graph)
        self._graph.owning_module = captured.graph.owning_module
        self._with_guards = guards
        self.arrays: dict[str, Any] = {}
        self._memories: dict[int, str] = {}
        self._places: dict[int, tuple[str, Any]] = {}
        """The names of arrays that are written, by identity; the arrays are kept so that no other takes the place."""
        self._trained: dict[str, bool] = {}
        self._shared: dict[str, str] = {}
        self._modules: dict[int, str] = {}
        self._modes: dict[str, bool] = {}
        self._imports: dict[str, None] = {}
        self._records: dict[str, str] = {}
        self._embedded = Embedded(self._imports)
        self._aliases: dict[str, str] = {}
        self._left_out: list[str] = []
        self._build: list[str] = []

    # ---- the file ------------------------------------------------------------------------------------------------

    def text(self) -> str:
        """The whole of ``model.py``."""
        checks = self._checks() if self._with_guards else []
        self._settle_computed_guards()
        code = self._graph.python_code("self", portable=True, guards=())
        function = code.src.rstrip("\n").split("\n")[code._prologue_start - 1 :]
        constants = [*self._globals(code), *code._constants, *(f"{new} = {old}" for new, old in self._aliases.items())]
        self._root_lines()
        head = next(place for place, line in enumerate(function) if line.endswith(":") and not line.startswith(" "))
        body = [*function[: head + 1], *(f"    {line}" for line in checks), *function[head + 1 :]]
        is_torch = self._framework == "torch"
        needed = ["torch"] if is_torch else ["numpy", "types", *(["jax.numpy"] if self._framework == "jax" else [])]
        imports = [*(f"import {one}" for one in ("json", "math", "pathlib", "struct", *needed)), *self._imports]
        parts = [
            self._title(), "from __future__ import annotations\n", "\n".join(sorted(set(imports))), "\n",
            f"_SHARED = {pprint.pformat(self._shared)}",
            f"_TRAINED = {pprint.pformat(self._trained)}" if is_torch else "",
            _READER, _TORCH_ARRAY if is_torch else _NUMPY_ARRAY, _RECORD if self._records else "",
            *self._records.values(), self._embedded.text(), "\n".join(filter(None, constants)), *self._program(body),
        ]  # fmt: skip
        text = "\n".join(parts).rstrip("\n") + "\n"
        return re.sub(r"\n{4,}", "\n\n\n", text)

    def _title(self) -> str:
        clew = sys.modules["clew"].__version__
        lines = [f'"""{self._name}, written by Clew {clew}. It runs without Clew: ``load()`` gives the program.']
        if not self._with_guards:
            lines += ["", "No assumption of the capture is checked here."]
        elif self._left_out:
            lines += ["", "Assumptions of the capture that are not checked here:"]
            lines += [f"    {line}" for line in self._left_out]
        text = "\n".join(lines).replace("\\", "\\\\").replace('"""', "'''")
        return '"""' + text[3:] + '\n"""\n'

    def _program(self, function: list[str]) -> Iterator[str]:
        """The program itself, and ``load``."""
        is_torch = self._framework == "torch"
        name = self._name if self._is_module else "_Program"
        yield f"\n\nclass {name}({'torch.nn.Module' if is_torch else ''}):".replace("()", "")
        yield "    def __init__(self):"
        if is_torch:
            yield "        super().__init__()"
            yield "        arrays = _stored()"
            yield "        for name, needs_gradient in _TRAINED.items():"
            yield "            arrays[name] = torch.nn.Parameter(arrays[name], requires_grad=needs_gradient)"
            yield "        arrays |= {name: arrays[home] for name, home in _SHARED.items()}"
        else:
            make = "jax.numpy.asarray(one)" if self._framework == "jax" else "one"
            yield f"        arrays = {{name: {make} for name, one in _stored().items()}}"
        yield from (f"        {line}" for line in self._build)
        yield from (f"        {line}" for line in self._mode_lines())
        yield ""
        yield from (f"    {line}" if line else "" for line in function)
        yield "\n\ndef load():"
        yield '    """The program."""'
        yield f"    return {name}()" if self._is_module else f"    return {name}().forward"

    def _mode_lines(self) -> Iterator[str]:
        """Lines that set each module to the mode that it was captured in."""
        if self._framework != "torch":
            return
        most = sum(self._modes.values()) * 2 > len(self._modes)
        yield f"self.train({most})"
        for path, mode in self._modes.items():
            if mode != most:
                yield f"self.get_submodule({path!r}).training = {mode}"

    # ---- guards --------------------------------------------------------------------------------------------------

    def _checks(self) -> list[str]:
        lines = []
        for one in self._graph.guards.entry:
            try:
                lines.append(f"assert {self._condition(one)}, {str(one)!r}")
            except _Unwritable:
                self._left_out.append(str(one))
        return lines

    def _condition(self, one: Guard) -> str:
        subject = self._expression(one.subject)
        expected = self._constant(one.expected)
        if one.test == "equals" and type(one.expected) is bool and isinstance(one.subject, Call):
            return subject if one.expected else f"not {subject}"
        if one.test in ("equals", "is"):
            word = "is" if one.expected is None or one.test == "is" else "=="
            return f"{subject} {word} {expected}"
        if one.test in ("length", "keys", "either", "type"):
            return _FORMS[one.test].format(subject, expected)
        if one.test == "array":
            return f"isinstance({subject}, {expected})"
        raise _Unwritable

    def _expression(self, subject: Any) -> str:
        if isinstance(subject, Node):
            return str(subject.target).lstrip("*")
        if isinstance(subject, Attribute):
            return _path("self", subject.path)
        if not isinstance(subject, Call):
            return self._constant(subject)
        args = [self._expression(part) for part in subject.args]
        if isinstance(subject.function, str):
            return f"{args[0]}.{subject.function}({', '.join(args[1:])})"
        if subject.function is getattr and isinstance(subject.args[1], str):
            return f"{args[0]}.{subject.args[1]}"
        function = self._constant(subject.function)
        return f"{function}({', '.join(args)})"

    def _constant(self, value: Any) -> str:
        """A value of a guard, if it can be written."""
        if isinstance(value, type) and not is_outside(value):
            raise _Unwritable
        try:
            if isinstance(value, FunctionType) and str(value.__module__).startswith("clew."):
                name = self._embedded.add(value)  # under a name that no variable of the program has
                self._aliases[f"_of_{name}"] = name
                return f"_of_{name}"
            return self._literal(value, "a guard")
        except CodegenError:
            raise _Unwritable from None

    def _settle_computed_guards(self) -> None:
        """Guards on computed values become calls of a function that asserts, or are taken out."""
        for node in [node for node in all_nodes(self._graph) if node.target is rebuild]:
            node.target = made_of
        for node in [node for node in all_nodes(self._graph) if node.target is guard]:
            if self._with_guards:
                node.target = assert_same
            else:
                node.graph.erase_node(node)

    # ---- names that the code uses --------------------------------------------------------------------------------

    def _globals(self, code: Any) -> Iterator[str]:
        """Lines that make the globals of the code."""
        made = {line.split(" = ")[0] for line in code._constants}
        imported = {line.split()[-1]: line for line in code.imports}
        for name, value in code.globals.items():
            if name in made:
                continue
            if isinstance(value, ModuleType):
                self._import(imported.get(name, f"import {value.__name__} as {name}"), value)
            elif isinstance(value, type) and not is_outside(value) and not value.__module__.startswith("clew."):
                yield f"{name} = {self._record(value)}" if self._record(value) != name else ""
            elif isinstance(value, (FunctionType, type)) and value.__module__.startswith("clew."):
                found = self._embedded.add(value)
                yield f"{name} = {found}" if found != name else ""
            else:
                text = self._literal(value, f"the code's {name}")
                yield f"{name} = {text}" if text != name else ""

    def _import(self, line: str, module: ModuleType) -> None:
        if not is_outside(module):
            raise _refused(f"the code uses the module {module.__name__}", "it is neither the framework's nor Python's")
        self._imports[line] = None

    def _record(self, kind: type) -> str:
        """A class of records for a class of another package."""
        name = re.sub(r"\W", "_", kind.__qualname__.rpartition(".")[2])
        if name not in self._records:
            shape, fields = shape_of_class(kind)
            if shape == "tuple":
                self._imports["import collections"] = None
                plain = f"class {name}(tuple): ..."
                text = f"{name} = collections.namedtuple({name!r}, {fields!r})" if fields else plain
                self._records[name] = f"\n{text}\n"
            else:
                base = "_Record" if shape == "mapping" else "object"
                self._records[name] = f"\nclass {name}({base}):\n    pass\n"
        return name

    def _literal(self, value: Any, where: str) -> str:
        """A value as an expression."""
        kind = type(value)
        if value is None or kind in (bool, int, str, bytes, complex) or value is ...:
            return repr(value)
        if kind is float:
            return repr(value) if value == value and abs(value) != float("inf") else f"float({str(value)!r})"
        if kind in (tuple, list, set, frozenset, dict, slice, range, SimpleNamespace):
            return self._container(value, kind, where)
        if self._is_array(value):
            return self._array(value, where)
        if kind is weakref.ref:
            self._imports["import weakref"] = None
            return f"weakref.ref({self._literal(value(), where)})"
        if self._torch is not None and kind in (self._torch.device, self._torch.Size):
            return f"torch.{value!r}" if kind is self._torch.Size else f"torch.device({str(value)!r})"
        if self._torch is not None and kind.__module__ == "torch" and str(value).startswith("torch."):
            return str(value)  # dtypes, layouts, memory formats
        if isinstance(value, numpy.dtype):
            self._imports["import numpy"] = None
            return f"numpy.dtype({value.str!r})"
        if isinstance(value, type) and not is_outside(value) and not value.__module__.startswith("clew."):
            return self._record(value)
        if isinstance(value, (FunctionType, type)) and str(value.__module__).startswith("clew."):
            return self._embedded.add(value)
        return self._named(value, where)

    def _named(self, value: Any, where: str) -> str:
        name = name_for(value)
        if (name is not None and isinstance(value, (FunctionType, BuiltinFunctionType, type))) or callable(value):
            package = (name or "").partition(".")[0]
            if name is not None and is_outside(sys.modules.get(package)):
                if package == "builtins":
                    return name.partition(".")[2]
                home = name.rpartition(".")[0]
                self._imports[f"import {home if home in sys.modules else package}"] = None
                return name
        raise _refused(
            f"{where} holds {name or 'a ' + type(value).__qualname__}",
            "the file may use the framework, NumPy and Python's own library, and nothing else",
        )

    def _container(self, value: Any, kind: Any, where: str) -> str:
        if kind is dict:
            items = [f"{self._literal(key, where)}: {self._literal(part, where)}" for key, part in value.items()]
            return "{" + ", ".join(items) + "}"
        if kind in (slice, range):
            parts = [self._literal(part, where) for part in (value.start, value.stop, value.step)]
            return f"{kind.__name__}({', '.join(parts)})"
        if kind is SimpleNamespace:
            self._imports["import types"] = None
            return f"types.SimpleNamespace(**{self._literal(vars(value), where)})"
        parts = [self._literal(part, where) for part in value]
        inner = ", ".join(parts)
        if kind is tuple:
            return f"({inner},)" if len(parts) == 1 else f"({inner})"
        return f"[{inner}]" if kind is list else f"{kind.__name__}([{inner}])"

    # ---- the root ------------------------------------------------------------------------------------------------

    def _root_lines(self) -> None:
        """Lines that put all that the program reads of its root in place."""
        called = [str(node.target) for node in all_nodes(self._graph) if node.op in ("get_attr", "call_module")]
        read = attribute_paths(self._graph.guards.entry) if self._with_guards else []
        paths = [path for path in dict.fromkeys([*called, *read]) if path != ROOT]
        leaves = [path for path in paths if self._is_module_at(path)]
        for path in paths:
            if not any(path.startswith(f"{leaf}.") for leaf in leaves):
                self._put(path, _follow(self._root, path))
        if self._is_module:
            self._modes[""] = bool(self._root.training)
        if ROOT in called:
            self._build.append(f"self.__dict__[{ROOT!r}] = self")

    def _is_module_at(self, path: str) -> bool:
        return self._torch is not None and isinstance(_follow(self._root, path, None), self._torch.nn.Module)

    def _put(self, path: str, value: Any) -> None:
        for count in range(1, path.count(".") + 1):
            holder = ".".join(path.split(".")[:count])
            mode = getattr(_follow(self._root, holder, None), "training", None)
            if isinstance(mode, bool):
                self._modes[holder] = mode
        if self._is_module_at(path):
            self._put_module(path, value)
        else:
            self._build.append(f"_put(self, {path!r}, {self._literal(value, path)})")

    def _put_module(self, path: str, module: Any) -> None:
        home = self._modules.setdefault(id(module), path)
        made = f"self.get_submodule({home!r})" if home != path else f"{self._module(path, module)}, arrays"
        self._build.append(f"_put(self, {path!r}, {made})")

    def _module(self, path: str, module: Any) -> str:
        """A module of the framework: by its constructor where that is sure to make the same, else of what it holds."""
        kind, held = type(module), vars(module)
        if any(held.get(name) for name in _HOOKS):
            raise _refused(f"the module {path} has hooks", "they are functions of this process", "remove them")
        if not is_outside(kind):
            again = "capture the program once more, which enters it: clew.trace(captured, args).to_python(folder)"
            advice = again if kind.__module__.startswith("clew.") else 'capture with leaves="none" for its own calls'
            raise _refused(f"the module {path} is a {kind.__qualname__}, which is no part of the framework",
                           "it stayed one call", advice)  # fmt: skip
        self._modes[path] = bool(module.training)
        tables = {table: {name: one if one is None else self._array(one, f"{path}.{name}")
                          for name, one in held[table].items()} for table in ("_parameters", "_buffers")}  # fmt: skip
        constructor = importlib.import_module(_FOLDER).faithful_constructor(module)
        if constructor is not None:
            return str(constructor)
        parts = [f"{name!r}: {None if part is None else self._module(f'{path}.{name}', part)}"
                 for name, part in held["_modules"].items()]  # fmt: skip
        kept = {name: one for name, one in held.items() if name not in _STRUCTURE}
        self._imports[f"import {kind.__module__}"] = None
        texts = ["{" + ", ".join(f"{name!r}: {one}" for name, one in table.items()) + "}" for table in tables.values()]
        attributes = self._literal(kept, path)
        return f"_bare({kind.__module__}.{kind.__qualname__}, {attributes}, {', '.join(texts)}, {{{', '.join(parts)}}})"

    # ---- arrays --------------------------------------------------------------------------------------------------

    def _is_array(self, value: Any) -> bool:
        jax = sys.modules.get("jax")
        is_torch = self._torch is not None and isinstance(value, self._torch.Tensor)
        return is_torch or isinstance(value, numpy.ndarray) or (jax is not None and isinstance(value, jax.Array))

    def _array(self, value: Any, where: str) -> str:
        """An array of the weights, each stored once, under the first name that it is found by."""
        name = re.sub(r"[^\w.]", "_", where)
        known = self._places.get(id(value))
        if known is None:
            while name in self.arrays or name in self._shared:
                name += "_"
            self._places[id(value)] = known = (name, value)
            self.arrays[name] = self._stored(value, name)
        elif name not in self.arrays:
            self._shared[name] = known[0]
        return f"arrays[{known[0]!r}]"

    def _stored(self, value: Any, name: str) -> Any:
        torch = self._torch
        if torch is None or not isinstance(value, torch.Tensor):
            array = numpy.ascontiguousarray(numpy.asarray(value)).reshape(numpy.shape(value))
            if array.dtype.kind not in "biufc":
                raise _refused(f"{name} is an array of {array.dtype}", "only numbers can be stored")
            return array
        if type(value) not in (torch.Tensor, torch.nn.Parameter) or value.layout is not torch.strided:
            raise _refused(f"{name} is a {type(value).__qualname__} ({value.layout})", "it is no plain tensor")
        if value.device.type == "meta":
            raise _refused(f"{name} is on the meta device", "it has no numbers")
        self._check_memory(value, name)
        if isinstance(value, torch.nn.Parameter):
            self._trained[name] = value.requires_grad
        return value.detach().cpu().contiguous().clone()

    def _check_memory(self, value: Any, name: str) -> None:
        """Refuse a tensor that shares memory with another: each is stored for itself, and a write to one would not
        reach the other."""
        memory = value.untyped_storage()
        other = self._memories.setdefault(memory.data_ptr(), name) if memory.nbytes() else name
        if other != name:
            raise _refused(
                f"{name} shares memory with {other}",
                "what writes to one of them would not write to the other",
                "give one of them memory of its own: tensor.clone()",
            )


class _Unwritable(Exception):
    """A guard that is about more than arguments and attributes."""


def made_of(kind: Any, state: dict[str, Any]) -> Any:
    """An object of a class of records with these attributes."""
    made = object.__new__(kind)
    made.__dict__.update(state)
    return made


def assert_same(value: Any, expected: Any = True, test: str = "equals") -> None:
    """Assert that a computed value is what it was when the program was captured."""
    if test == "equals":
        assert value is expected or bool(value == expected), f"{value!r} should be {expected!r}"
    elif test == "type":
        assert type(value) is expected, f"the program relies on {expected!r}, and this is {type(value)!r}"
    elif test == "length":
        assert len(value) == expected, f"the program relies on {expected!r} items, and here are {len(value)}"
    else:
        raise AssertionError(f"a test that is not known: {test}")


def _refused(what: str, why: str, *fixes: str) -> CodegenError:
    return CodegenError(f"{what}, which a file that needs no Clew cannot hold", why=why,
                        fixes=(*fixes, "clew.save keeps it for Clew"))  # fmt: skip


def _follow(root: Any, path: str, *default: Any) -> Any:
    found = root
    for part in path.split(".") if path else ():
        found = getattr(found, part, *default)
    return found


def _path(start: str, path: str) -> str:
    """An attribute by its path, as Python reads it."""
    text = start
    for part in path.split(".") if path else ():
        text = f"{text}.{part}" if part.isidentifier() else f"getattr({text}, {part!r})"
    return text
