"""Values of a captured program as JSON, and back: plain data, arrays, modules, and what guards look at.

Numbers, texts and lists are themselves; all else is a table with one entry, whose key says what it is. Arrays lie in
the weights, each once: two names for one array stay two names for one array. Modules are rebuilt from their classes,
attributes and parts without running anything of theirs. A value that is none of these is refused when it is saved.
"""

from __future__ import annotations

import functools
import importlib
import math
import operator
import sys
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable
from types import MethodType, ModuleType, SimpleNamespace
from typing import Any

import numpy

from clew.capture.guards.notes import Variable, current_number
from clew.capture.guards.saved_variables import HolderPath, SavedValue
from clew.capture.guards.variable_reads import loaded_item
from clew.errors import BundleError, ClewError
from clew.io.bundle.weights import Weights, is_known
from clew.ir.arguments import all_nodes
from clew.ir.graph import Graph
from clew.ir.guards import Call
from clew.ir.names import name_for
from clew.ir.permissions import Permissions
from clew.ir.pickling import Missing, is_sure, record_class, shape_of_class
from clew.runtime.function import GraphFunction

JSON = Any
"""What the ``json`` library reads and writes."""
_SEQUENCES = {"tuple": tuple, "set": set, "frozenset": frozenset, "deque": deque}
_RUNNING = ("_backward_pre_hooks", "_backward_hooks", "_forward_hooks", "_forward_pre_hooks")
"""Hooks that run when a module is called; those of a module that the graph never calls, only reads, say nothing."""
_HOOKS = (
    *_RUNNING,
    *"_forward_hooks_with_kwargs _forward_hooks_always_called _forward_pre_hooks_with_kwargs _state_dict_hooks "
    "_state_dict_pre_hooks _load_state_dict_pre_hooks _load_state_dict_post_hooks".split(),
)
STRUCTURE = ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set", "training", *_HOOKS)


class Encoder:
    """Writes values; ``arrays`` holds what goes into the weights, ``modules`` the table of modules.

    ``of_program`` writes a program inside of the program. ``quiet`` are modules whose hooks never run, by their ids.
    ``schema`` is the version of the format that a reader has to know.
    """

    def __init__(self, of_program: Callable[[Any, Encoder], JSON]) -> None:
        self.schema = 1
        self.quiet: set[int] = set()
        self._of_program = of_program
        self.arrays: dict[str, Any] = {}
        self.tensors: list[JSON] = []
        self.modules: list[JSON] = []
        self.classes: dict[str, JSON] = {}
        self._seen: dict[int, tuple[int, Any]] = {}
        self._stored: dict[Any, str] = {}
        self._where = ""

    def needs(self, schema: int) -> None:
        """A reader has to know this version of the format."""
        self.schema = max(self.schema, schema)

    def value(self, value: Any, where: str = "") -> JSON:
        """One value; ``where`` tells in errors what it is."""
        self._where = where or self._where
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if kind is list:
            return [self.value(part) for part in value]
        if kind in (dict, OrderedDict):
            named = ((key if type(key) is str else "", part) for key, part in value.items())
            pairs = [
                [self.value(key), self.value(part, where)] for key, (where, part) in zip(value, named, strict=True)
            ]
            return {"dict" if kind is dict else "ordered": pairs}
        for name, sequence in _SEQUENCES.items():
            if kind is sequence:
                return {name: [self.value(part) for part in value]}
        return self._other(value, kind)

    def _other(self, value: Any, kind: Any) -> JSON:
        plain = _PLAIN.get(kind)
        if plain is not None:
            return {plain[0]: [self.value(part) for part in plain[1](value)]}
        if kind.__name__ in _WATCHING and kind.__module__.startswith("clew."):
            return {kind.__name__: [self.value(part) for part in value.__reduce__()[1]]}
        if kind is Missing:
            self.needs(2)
            return {"missing": [value.name, value.fix]}
        if kind in (HolderPath, SavedValue):
            return {kind.__name__: [self.value(part) for part in value]}
        if isinstance(value, type):
            return {"class": self._class(value)}
        if isinstance(value, weakref.ref):
            return {"weak": self.value(value())}
        framework = self._of_framework(value, kind)
        if framework is not None:
            return framework
        if isinstance(value, GraphFunction):
            self.needs(3)
            return {"program": self._of_program(value, self)}
        name = name_for(value)
        if name is None and _is_plain_object(value, kind):
            return {"object": self._object(value, kind)}
        if name is None:
            raise BundleError(
                f"{self._where or 'the program'} holds a {kind.__qualname__}, which a bundle cannot hold",
                why="a bundle has plain data, arrays, modules of frameworks, and functions that have names",
                fixes=("pass it as an argument", "save the capture by pickle, which keeps any object"),
            )
        return {"name": name}

    def _of_framework(self, value: Any, kind: Any) -> JSON | None:
        torch = sys.modules.get("torch")
        if torch is not None:
            if isinstance(value, torch.Tensor):
                return {"tensor": self._tensor(value, torch)}
            if isinstance(value, torch.jit.ScriptFunction):
                return {"program": self._scripted(value)}
            if isinstance(value, torch.nn.Module):
                return {"module": self.module(value)}
            if kind is MethodType and value.__func__ is vars(torch.autograd.Function)["apply"].__func__:
                self.needs(2)
                return {"apply": self._class(value.__self__)}  # where a class's own ``apply`` is another
            if kind.__name__ == "CustomGradient" and kind.__module__.startswith("clew."):
                self.needs(3)
                passes = self._of_program(value.forward, self), self._of_program(value.backward, self)
                return {"gradient": [value.__name__, *passes]}
            if kind is torch.Generator:
                return {"generator": self._generator(value)}
            if kind is torch.device:
                return {"device": str(value)}
            if kind is torch.Size:
                return {"size": list(value)}
        if isinstance(value, (numpy.ndarray, numpy.generic)):
            return {"array" if isinstance(value, numpy.ndarray) else "scalar": self._array(value)}
        tensorflow = sys.modules.get("tensorflow")
        if tensorflow is not None and kind.__module__.startswith("tensorflow."):
            found = self._of_tensorflow(value, tensorflow)
            if found is not None:
                return found
        jax = sys.modules.get("jax")
        if jax is not None and isinstance(value, jax.Array) and not isinstance(value, jax.core.Tracer):
            return {"jax": self._array(numpy.asarray(value))}
        return {"dtype": value.str} if isinstance(value, numpy.dtype) and value.hasobject is False else None

    def _of_tensorflow(self, value: Any, tensorflow: Any) -> JSON | None:
        self.needs(2)
        if isinstance(value, tensorflow.Variable):
            return {"variable": self._variable(value)}
        if isinstance(value, tensorflow.Tensor):
            return {"constant": self._array(value.numpy())}
        if isinstance(value, tensorflow.DType):
            return {"number type": value.name}
        if isinstance(value, tensorflow.TensorShape):
            return {"sizes": None if value.rank is None else value.as_list()}
        return None

    def _variable(self, value: Any) -> JSON:
        """The number of a variable, which stays one wherever it is used."""
        if id(value) not in self._seen:
            array = self._array(value.numpy())
            self._seen[id(value)] = (len(self.tensors), value)
            sizes = None if value.shape.rank is None else value.shape.as_list()
            name = value.name.partition(":")[0]
            self.tensors.append({"value": array, "name": name, "trainable": value.trainable, "sizes": sizes})
        return self._seen[id(value)][0]

    def _class(self, kind: Any) -> JSON:
        """A class by its name, and what a record needs that stands for it elsewhere."""
        if not is_sure(kind):
            self.note_class(kind)
        return f"{kind.__module__}.{kind.__qualname__}"

    def label(self, kind: Any) -> str:
        """The name of a class that only says what something was: nobody needs the class itself."""
        if not (is_sure(kind) and kind.__module__.startswith("torch.nn.")):
            self.note_class(kind)
        return f"{kind.__module__}.{kind.__qualname__}"

    def note_class(self, kind: Any) -> None:
        """Remember what a record needs that stands for a class where that may not be named."""
        shape, fields = shape_of_class(kind)
        home, name = kind.__module__, kind.__qualname__
        self.classes[f"{home}.{name}"] = [home, name, shape, list(fields)]

    def _scripted(self, value: Any) -> JSON:
        """A program of TorchScript, as the graph that computes the same."""
        self.needs(2)
        convert = importlib.import_module(_TORCHSCRIPT).from_torchscript
        try:
            return self._of_program(convert(value), self)
        except ClewError as error:
            raise BundleError(
                f"{self._where or 'the program'} holds a program of TorchScript that is no graph: {error.what}",
                why=error.why,
                fixes=("compile after loading: save the capture of the model that is not scripted",),
            ) from error

    def _generator(self, value: Any) -> JSON:
        """The number of a generator of random numbers, which goes on where it stands now."""
        self.needs(2)
        if id(value) not in self._seen:
            state = self.value(value.get_state())
            self._seen[id(value)] = (len(self.tensors), value)
            self.tensors.append({"generator": str(value.device), "state": state})
        return self._seen[id(value)][0]

    def _object(self, value: Any, kind: Any) -> JSON:
        """The number of an object that is nothing but its attributes; it may refer to itself."""
        self.needs(2)
        if id(value) not in self._seen:
            self.note_class(kind)
            entry: dict[str, JSON] = {"class": f"{kind.__module__}.{kind.__qualname__}"}
            self._seen[id(value)] = (len(self.tensors), value)
            self.tensors.append(entry)
            entry["attributes"] = {name: self.value(part) for name, part in vars(value).items()}
        return self._seen[id(value)][0]

    # ---- arrays --------------------------------------------------------------------------------------------------

    def _array(self, value: Any) -> JSON:
        if id(value) not in self._seen:
            array = numpy.asarray(value)
            entry: dict[str, JSON] = {"data": f"array{len(self.arrays)}"}
            stored = numpy.ascontiguousarray(array).reshape(array.shape)
            if not is_known(array):
                if array.dtype.kind not in OF_BYTES:
                    raise BundleError(f"{self._where or 'the program'} holds an array of {array.dtype}, not of numbers")
                entry["dtype"] = array.dtype.str
                self.needs(2)
                stored = numpy.frombuffer(stored.tobytes(), numpy.uint8).reshape(*array.shape, array.itemsize)
            self.arrays[entry["data"]] = stored
            self._seen[id(value)] = (len(self.tensors), value)
            self.tensors.append(entry)
        return self._seen[id(value)][0]

    def _tensor(self, value: Any, torch: Any) -> int:
        """The number of a tensor; those that share memory share it after loading."""
        if id(value) in self._seen:
            return self._seen[id(value)][0]
        kind = type(value)
        if kind not in (torch.Tensor, torch.nn.Parameter) or value.is_quantized:
            is_sub = not value.is_quantized
            raise BundleError(
                f"{self._where or 'the program'} holds {'a ' + kind.__qualname__ if is_sub else 'a quantized tensor'}, "
                "and a bundle has plain tensors",
                fixes=("save the capture by pickle",),
            )
        entry: dict[str, JSON] = {"requires_grad": value.requires_grad, "parameter": kind is torch.nn.Parameter}
        if value.device.type == "meta":
            raise BundleError("weights on the meta device have no numbers to save")
        if value.layout is not torch.strided:
            entry |= self._sparse(value.detach(), torch)
        else:
            if value.device.type != "cpu":
                entry["device"] = str(value.device)
            entry |= self._memory(value.detach(), torch)
        self._seen[id(value)] = (len(self.tensors), value)
        self.tensors.append(entry)
        return len(self.tensors) - 1

    def _sparse(self, value: Any, torch: Any) -> dict[str, JSON]:
        """What a sparse tensor is made of."""
        self.needs(2)
        layout = str(value.layout).removeprefix("torch.")
        if layout not in SPARSE:
            raise BundleError(f"{self._where or 'the program'} holds a tensor of the layout {layout}")
        parts = [self.value(getattr(value, name)()) for name in SPARSE[layout]]
        is_coalesced = value.is_coalesced() if value.layout is torch.sparse_coo else None
        return {"layout": layout, "parts": parts, "shape": list(value.shape), "coalesced": is_coalesced}

    def _memory(self, value: Any, torch: Any) -> dict[str, JSON]:
        """Where the numbers of a tensor are stored: as they are, or as a view of all numbers of its memory."""
        storage = value.untyped_storage()
        key = (storage.data_ptr(), storage.nbytes(), value.dtype)
        whole = storage.nbytes() == value.numel() * value.element_size()
        if key in self._stored and storage.nbytes():
            entry: dict[str, JSON] = {"data": self._stored[key]}
            if not is_known(value):
                entry["dtype"] = str(value.dtype).removeprefix("torch.")
            place = {"stride": list(value.stride()), "offset": value.storage_offset(), "shape": list(value.shape)}
            return entry | place
        is_free = bool(self._where) and self._where not in self.arrays
        name = self._stored[key] = self._where if is_free else f"#{len(self.arrays)}"
        entry = {"data": name}
        if not (whole and value.is_contiguous() and is_known(value)):
            entry |= {"stride": list(value.stride()), "offset": value.storage_offset(), "shape": list(value.shape)}
            value = torch.as_strided(value, (storage.nbytes() // value.element_size(),), (1,), 0)
        if not is_known(value):
            entry["dtype"] = str(value.dtype).removeprefix("torch.")
            self.needs(2)
            value = value.resolve_conj().resolve_neg().view(torch.uint8)
        self.arrays[name] = value.cpu()
        return entry

    # ---- modules -------------------------------------------------------------------------------------------------

    def module(self, module: Any, path: str = "") -> int:
        """The number of a module of torch in the table; its parts come after it."""
        if id(module) in self._seen:
            return self._seen[id(module)][0]
        held = vars(module)
        if isinstance(module, sys.modules["torch"].jit.ScriptModule):
            place = len(self.modules)
            self._seen[id(module)] = (place, module)
            self.modules.append({})
            self.modules[place]["program"] = self._scripted(module)
            return place
        if id(module) not in self.quiet and any(held.get(name) for name in _RUNNING):
            raise BundleError(
                f"the module {path or 'itself'!r} has hooks, and a bundle holds no functions of yours",
                fixes=(
                    "put what hooks of forward do into the graph: clew.trace(..., leaves=())",
                    "remove the hooks before the capture",
                    "save the capture by pickle",
                ),
            )
        place = len(self.modules)
        self._seen[id(module)] = (place, module)
        self.modules.append({})
        start = f"{path}." if path else ""
        entry = self.modules[place]
        entry["class"] = self._class(type(module))
        entry["training"] = module.training
        entry["parameters"] = self._tensors(held["_parameters"], start)
        entry["buffers"] = self._tensors(held["_buffers"], start)
        entry["not_saved"] = sorted(held["_non_persistent_buffers_set"])
        entry["modules"] = {
            name: None if part is None else self.module(part, start + name) for name, part in held["_modules"].items()
        }
        entry["attributes"] = {
            name: self.value(part, start + name) for name, part in held.items() if name not in STRUCTURE
        }
        return place

    def _tensors(self, held: dict[str, Any], start: str) -> JSON:
        return {name: None if one is None else self.value(one, start + name) for name, one in held.items()}


def _is_plain_object(value: Any, kind: Any) -> bool:
    """Whether an object of a class that is nobody's but the user's, or a package's, is nothing but its attributes."""
    if type(getattr(value, "__dict__", None)) is not dict or is_sure(kind) or "<locals>" in kind.__qualname__:
        return False
    if any(vars(base).get("__slots__") for base in kind.__mro__) or isinstance(value, (type, ModuleType)):
        return False
    own = (getattr(kind, name, None) is getattr(object, name, None) for name in ("__reduce__", "__reduce_ex__"))
    return all(own) and kind.__new__ is object.__new__ and not hasattr(kind, "__setstate__")


_PLAIN: dict[Any, Any] = {
    complex: ("complex", lambda value: (value.real, value.imag)),
    slice: ("slice", lambda value: (value.start, value.stop, value.step)),
    range: ("range", lambda value: (value.start, value.stop, value.step)),
    bytes: ("bytes", lambda value: (value.hex(),)),
    type(Ellipsis): ("ellipsis", lambda value: ()),
    SimpleNamespace: ("namespace", lambda value: (vars(value),)),
}
_TORCHSCRIPT = "clew.io.torchscript"
"""What reads programs of TorchScript; it waits until there is one."""
SPARSE = {
    "sparse_coo": ("_indices", "_values"),
    "sparse_csr": ("crow_indices", "col_indices", "values"),
    "sparse_csc": ("ccol_indices", "row_indices", "values"),
    "sparse_bsr": ("crow_indices", "col_indices", "values"),
    "sparse_bsc": ("ccol_indices", "row_indices", "values"),
}
"""The layouts of sparse tensors, and the tensors that each is made of."""
OF_BYTES = "cSUmM"
"""Kinds of arrays whose bytes are stored, as safetensors has none of them: large complex numbers, texts and times."""
_WATCHING = ("Variable", "Item", "Unchanged")
"""Classes of what guards look at; each tells the arguments that it is made of."""


class Decoder:
    """Reads values of one file."""

    def __init__(
        self, manifest: JSON, weights: Weights, permissions: Permissions, of_program: Callable[[JSON, Decoder], Any]
    ) -> None:
        self.of_program = of_program
        self.framework = ""
        self.tensors: list[JSON] = manifest["tensors"]
        self.modules: list[JSON] = manifest["modules"]
        self.weights = weights
        self.permissions = permissions
        self._arrays: dict[int, Any] = {}

    def value(self, found: JSON) -> Any:
        """One value."""
        if found is None or type(found) in (bool, int, float, str):
            return found
        if type(found) is list:
            return [self.value(part) for part in found]
        ((kind, held),) = found.items()
        if kind in _SEQUENCES:
            return _SEQUENCES[kind](self.value(part) for part in held)
        if kind in ("dict", "ordered"):
            pairs = {self.value(key): self.value(part) for key, part in held}
            return pairs if kind == "dict" else OrderedDict(pairs)
        read = _READ.get(kind)
        if read is None:
            raise BundleError(f"the file has a value of an unknown kind, {kind!r}")
        return read(self, held)

    def parts(self, held: JSON) -> list[Any]:
        """Several values."""
        return [self.value(part) for part in held]

    def name(self, held: JSON) -> Any:
        """What a name stands for."""
        return self.permissions.value(str(held))

    def array(self, place: JSON) -> Any:
        """An array of NumPy by its number."""
        if place not in self._arrays:
            entry = self.tensors[place]
            found = self.weights.array(entry["data"])
            if "dtype" in entry:
                dtype = numpy.dtype(entry["dtype"])
                if dtype.kind not in OF_BYTES or found.dtype != numpy.uint8 or found.shape[-1] != dtype.itemsize:
                    raise BundleError("an array of the file has an impossible kind of numbers")
                found = numpy.frombuffer(found, dtype).reshape(found.shape[:-1])
            self._arrays[place] = found
        return self._arrays[place]

    def object(self, place: JSON) -> Any:
        """An object by its number: of its class if the caller has named that, and a record otherwise."""
        if place not in self._arrays:
            entry = self.tensors[place]
            name = str(entry["class"])
            kind = self.permissions.find(name) if self.permissions.has_named(name) else self.permissions.records[name]
            self._arrays[place] = made = object.__new__(kind)
            vars(made).update({str(key): self.value(part) for key, part in entry["attributes"].items()})
        return self._arrays[place]

    def of_framework(self, kind: str, held: JSON) -> Any:
        """What programs of torch or TensorFlow alone have: see ``TorchDecoder`` and ``TensorflowDecoder``."""
        raise BundleError(f"the file has a {kind}, which programs of its framework do not have")


def _jax(decoder: Decoder, held: JSON) -> Any:
    return importlib.import_module(_JAX).asarray(decoder.array(held))


_JAX = "jax.numpy"


def _range(decoder: Decoder, held: JSON) -> Any:
    return range(*decoder.parts(held))


def _of_framework(kind: str, decoder: Decoder, held: JSON) -> Any:
    return decoder.of_framework(kind, held)


_OF_TORCH = ("tensor", "module", "device", "size", "Unchanged", "generator", "apply", "gradient")
_OF_TENSORFLOW = ("variable", "constant", "number type", "sizes")


_READ: dict[str, Any] = {
    "float": lambda decoder, held: {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}[held],
    "complex": lambda decoder, held: complex(*decoder.parts(held)),
    "slice": lambda decoder, held: slice(*decoder.parts(held)),
    "range": _range,
    "bytes": lambda decoder, held: bytes.fromhex(held[0]),
    "ellipsis": lambda decoder, held: ...,
    "namespace": lambda decoder, held: SimpleNamespace(**decoder.value(held[0])),
    "Variable": lambda decoder, held: Variable(*decoder.parts(held)),
    "Item": lambda decoder, held: loaded_item(*decoder.parts(held)),
    "HolderPath": lambda decoder, held: HolderPath(*decoder.parts(held)),
    "SavedValue": lambda decoder, held: SavedValue(*decoder.parts(held)),
    "object": Decoder.object,
    "missing": lambda decoder, held: Missing(*map(str, held)),
    "program": lambda decoder, held: decoder.of_program(held, decoder),
    "class": Decoder.name,
    "name": Decoder.name,
    "weak": lambda decoder, held: weakref.ref(decoder.value(held)),
    **{kind: functools.partial(_of_framework, kind) for kind in (*_OF_TORCH, *_OF_TENSORFLOW)},
    "array": Decoder.array,
    "scalar": lambda decoder, held: decoder.array(held)[()],
    "jax": _jax,
    "dtype": lambda decoder, held: numpy.dtype(held),
}


def record_for(entry: JSON) -> Any:
    """The class of records that stands for a class which may not be named, or is not there."""
    module, name, shape, fields = entry
    names = (module, name, *fields)
    if shape not in ("tuple", "mapping", "object") or not all(type(one) is str and one for one in names):
        raise BundleError("the file describes a class in a way that is not known")
    if not all(one.isidentifier() and not one.startswith("__") for one in fields):
        raise BundleError(f"the file gives the class {name} fields that are no names")
    return record_class(module, name, shape, tuple(fields))


# ---- variables -------------------------------------------------------------------------------------------------------


def check_variables(graph: Graph, permissions: Permissions) -> None:
    """Raise if the graph takes values from variables of modules that the caller has not named, or sets them.

    What a node reads may be a function, which another node calls. A guard that looks at a variable, and calls nothing
    with what it finds, is harmless; and so is a number.
    """
    for node in all_nodes(graph):
        if node.target is not current_number:
            _check_parts((node.args, node.kwargs), permissions)
        for one in node.graph.guards.entry if node.op == "output" else ():
            _check_subject(one.subject, permissions)


def _check_subject(subject: Any, permissions: Permissions) -> None:
    if isinstance(subject, Call):
        home = str(getattr(subject.function, "__module__", ""))
        only_looks = subject.function in _LOOKING or home.startswith("clew.")
        for part in subject.args:
            (_check_subject if only_looks else _check_parts)(part, permissions)


def _check_parts(value: Any, permissions: Permissions) -> None:
    if isinstance(value, Variable):
        holder = value.root.holder
        if not permissions.has_named(_module_of(holder)):
            raise permissions.refused(f"{_module_of(holder)}.{value.root.name}")
    elif isinstance(value, Call):
        _check_parts(value.args, permissions)
    elif isinstance(value, (list, tuple)):
        for part in value:
            _check_parts(part, permissions)
    elif isinstance(value, dict):
        _check_parts((*value.keys(), *value.values()), permissions)


_LOOKING = (getattr, hasattr, len, type, isinstance, bool, operator.getitem, operator.contains)
"""Functions that call nothing of what they are given."""


def _module_of(holder: Any) -> str:
    """The module that has a variable."""
    if type(holder) is not HolderPath:
        return type(holder).__qualname__
    where = holder.where
    if holder.kind == "main":
        return "__main__"
    return where if isinstance(where, str) else str(where[0]) if where else "sys"
