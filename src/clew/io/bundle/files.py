"""``clew.save`` and ``clew.load``: the zip, its manifest, and what is checked before anything is believed.

In goes a captured program, out comes a file, and the other way round. Entries of the zip have fixed names; each has a
limit on its size, and the weights are read in place. Whatever a damaged or hostile file holds, loading raises a
``BundleError``, runs nothing of it and writes nothing.
"""

from __future__ import annotations

import copy
import importlib
import json
import os
import struct
import sys
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from clew.capture.guards.notes import Variable
from clew.capture.guards.saved_variables import HolderPath, path_of_holder
from clew.capture.guards.variables import WatchedVariables, changed
from clew.codegen.python import CodeGen
from clew.errors import BundleError, ClewError, NotAllowed, TextError
from clew.io.bundle import weights
from clew.io.bundle.values import JSON, Decoder, Encoder, check_variables, record_for
from clew.ir.arguments import all_nodes
from clew.ir.graph import Graph
from clew.ir.guards import Attribute, Guard, leaves_of, referred_paths
from clew.ir.guests import module_guest
from clew.ir.names import NotFound, name_for
from clew.ir.node import Node
from clew.ir.permissions import Permissions
from clew.ir.pickling import Missing, is_sure
from clew.ir.text import parse_with, text_and_objects
from clew.runtime.function import GraphFunction
from clew.runtime.lazy import LazyGraph, SavedCaptures

SCHEMA = 3
"""The version of the manifest. Files of a later one are refused; those of earlier ones are read. A file has the
earliest version that knows all it holds."""
_MANIFEST, _GRAPH, _WEIGHTS, _CODE = "manifest.json", "graph.txt", "weights.safetensors", "model.py"
_LIMITS = {_MANIFEST: 256 << 20, _GRAPH: 256 << 20, _CODE: 256 << 20}
_PADDING = 0xD935
"""The tag of an extra field of a zip that only fills up, as tools that align zips use it."""
_BLOCK = 1 << 26
"""How much is written at once: file systems keep large blocks in large pages, which are mapped much faster."""
_KINDS = {
    "module": ("torch", "clew.runtime.torch_captured", "CapturedModule"),
    "function": ("torch", "clew.runtime.torch_captured", "CapturedFunction"),
    "scripted module": ("torch", "clew.io.torchscript", "ScriptedModule"),
    "graph module": ("torch", "clew.runtime.module", "GraphModule"),
    "graph function": ("", "clew.runtime.function", "GraphFunction"),
    "jax": ("jax", "clew.runtime.numpy_captured", "JaxCapture"),
    "numpy": ("numpy", "clew.runtime.numpy_captured", "ArrayCapture"),
    "tensorflow": ("tensorflow", "clew.runtime.tensorflow_captured", "TensorflowCapture"),
}
"""The callables that can be saved: the framework of each, and where its class is; derived ones come first."""
_LAZY_MODULE = "clew.runtime.lazy_module"
_FUNCTIONS = "clew.io.bundle.functions_as_graphs"
_DECODERS = {
    "torch": ("clew.io.bundle.torch_values", "TorchDecoder"),
    "tensorflow": ("clew.io.bundle.tensorflow_values", "TensorflowDecoder"),
}
_PLAIN = ("clew.io.bundle.values", "Decoder")
"""What reads the values of each framework's programs; it waits until it is needed."""
_MALFORMED = (
    KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, RecursionError, RuntimeError,
    AssertionError, OSError, zlib.error, struct.error,
    zipfile.BadZipFile, zipfile.LargeZipFile, EOFError, MemoryError, NotImplementedError,
)  # fmt: skip
"""What reading data that is not what it should be raises."""


# ---- saving ----------------------------------------------------------------------------------------------------------


def save(captured: Any, path: str | os.PathLike[str]) -> None:
    """Write a captured program to a file: its graph and guards as text, its weights as safetensors, its code to read.

    The file is complete or not there: an error leaves what was at ``path`` as it was.
    """
    encoder = Encoder(_program_inside)
    if isinstance(captured, (LazyGraph, SavedCaptures)) or _is_saved_module(captured):
        program, graph, text, code = _lazy(captured, encoder)
    else:
        program, graph, text = _program(captured, encoder)
        code = captured.code
    framework = _KINDS[program["kind"]][0]
    _warn_of_names(graph, framework, encoder)
    manifest: dict[str, JSON] = {
        "schema": encoder.schema,
        "clew": _version("clew"),
        "framework": framework,
        "version": _version(framework),
        **program,
        "stacks": _stacks(graph, encoder),
    }
    manifest |= {"classes": encoder.classes, "tensors": encoder.tensors, "modules": encoder.modules}
    with _written(Path(path)) as target, tempfile.TemporaryDirectory(dir=target.parent) as folder:
        stored = Path(folder) / _WEIGHTS
        weights.write(encoder.arrays, stored)
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr(_MANIFEST, json.dumps(manifest, indent=1, allow_nan=False))
            file.writestr(_GRAPH, text)
            file.writestr(_CODE, code)
            _add_aligned(file, stored)


def _warn_of_names(graph: Graph, framework: str, encoder: Encoder) -> None:
    """Tell of what only those can load who allow it."""
    permissions = Permissions((framework,), "clew.load(path")
    called = {node.target for node in all_nodes(graph) if node.op == "call_function"}
    written = [name_for(target) for target in called if type(target) is not Missing]
    names = sorted({*filter(None, written), *(entry.get("class", "") for entry in encoder.modules)})
    wanted = []
    for name in filter(None, names):
        with suppress(NotFound):
            try:
                permissions.find(name)
            except NotAllowed:
                wanted.append(name)
    if wanted:
        listed = ", ".join(map(repr, (framework, *wanted) if framework else wanted))
        warnings.warn(
            f"the file names {', '.join(wanted)}: it loads only where that is imported, and only by "
            f"clew.load(path, allow=({listed},))",
            stacklevel=3,
        )


def _is_saved_module(captured: Any) -> bool:
    home = sys.modules.get(_LAZY_MODULE)
    return home is not None and isinstance(captured, home.SavedModule)


def _lazy(lazy: Any, encoder: Encoder) -> tuple[dict[str, JSON], Graph, str, str]:
    """What the manifest says of the captures of a lazy graph that hold for its program as it stands, the graph of the
    first one, its text, and the code of all."""
    is_own = isinstance(lazy, LazyGraph)
    known = [one.captured for one in lazy._running.entries if one.fingerprint.holds()] if is_own else lazy.captures
    if not known:
        raise BundleError(
            "the lazy graph has no capture of its program as it stands",
            fixes=("call it with the kinds of arguments that it shall know", "save clew.trace(fn, args)"),
        )
    holder = None
    if isinstance(known[0].root, _live()):
        holder = importlib.import_module(_LAZY_MODULE).holder_of(lazy, [one.graph for one in known])
    if holder is None and len(known) > 1 and any(getattr(one.root, "_state", ()) for one in known):
        raise BundleError(
            "the captures of the lazy graph change a state that they have in common, which has no module",
            fixes=("keep the state in a module", "save one of them: clew.save(lazy.captures[0], path)"),
        )
    encoder.needs(2)
    (program, graph, text), *others = [_program(one, encoder, holder) for one in known]
    inside = [{**entry, "graph": written} for entry, _, written in others]
    name = str(getattr(lazy, "__name__", type(lazy).__name__))
    is_module = {"holder": None if holder is None else encoder.value(holder)}
    program["lazy"] = {"name": name if name.isidentifier() else "lazy", "others": inside, **is_module}
    code = "\n\n".join(f"# capture {place} of {len(known)}\n{one.code}" for place, one in enumerate(known, 1))
    return program, graph, text, code


def _live() -> Any:
    home = sys.modules.get("clew.runtime.torch_captured")
    return () if home is None else home.Live


def _program(captured: Any, encoder: Encoder, holder: Any = None) -> tuple[dict[str, JSON], Graph, str]:
    """What the manifest says of a program, its graph and the text of that."""
    kind = _kind_of(captured)
    graph = _own_graph(captured.graph)
    if _KINDS[kind][0] == "torch":
        graph = importlib.import_module(_FUNCTIONS).with_functions_as_graphs(graph)
    if graph._chosen_codegen is not None and type(graph._chosen_codegen) is not CodeGen:
        raise BundleError("the graph has a CodeGen of its own, which no bundle can hold", fixes=("save it by pickle",))
    text, objects = text_and_objects(graph, sources=True)
    entry = {
        "kind": kind,
        "name": type(captured).__name__ if "module" in kind else captured.__name__,
        "root": _root_of(captured, kind, graph, encoder, holder),
        "objects": {mark: encoder.value(value, f"{mark} in the graph") for mark, value in objects.items()},
    }
    _note_classes(graph, encoder)
    return entry, graph, text


def _program_inside(captured: Any, encoder: Encoder) -> JSON:
    """A program that another one calls."""
    entry, _, text = _program(captured, encoder)
    return {**entry, "graph": text}


def _own_graph(graph: Graph) -> Graph:
    """The graph as it is saved: without guards on what the file has for itself, so that nobody else can change it."""
    if not any(map(_is_of_file, graph.guards.entry)):
        return graph
    graph = copy.deepcopy(graph)
    graph.guards = [one for one in graph.guards.entry if not _is_of_file(one)]
    return graph


def _is_of_file(one: Guard) -> bool:
    """Whether a guard is on modules around the original, or on attributes of an object that only the original has."""
    state = sys.modules.get("clew.frameworks.torch.modules.state")
    function = getattr(one.subject, "function", None)
    if function is changed or (state is not None and function is state.are_as_they_were):
        return True
    found = list(leaves_of(one.subject))
    if any(map(_is_module, found)) and not any(isinstance(leaf, (Node, Attribute)) for leaf in found):
        return True  # the mode of a module that a variable of a library holds: the file has its own
    return bool(found) and all(isinstance(leaf, Variable) and _is_on_object(leaf.root) for leaf in found)


def _is_module(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.nn.Module)


def _is_on_object(variable: Variable) -> bool:
    """Whether a variable is an attribute of an object, or of a closure, that no name leads to in another process."""
    holder = variable.holder
    if isinstance(holder, (dict, list, HolderPath)) or module_guest(holder) is not None:
        return False
    path = path_of_holder(holder, variable.name)
    return path is holder or (type(path) is HolderPath and path.kind == "nowhere")


def _kind_of(captured: Any) -> str:
    for kind, (_, home, name) in _KINDS.items():
        module = sys.modules.get(home)
        known = None if module is None else getattr(module, name)
        if known is not None and (type(captured) is known or getattr(type(captured), "__mro__", ())[1:2] == (known,)):
            return kind
    raise BundleError(
        f"a {type(captured).__name__} cannot be saved as a bundle",
        why="a bundle holds one captured program of PyTorch, NumPy or JAX",
        fixes=("save what clew.trace gives for an example; a lazy graph has one capture for each kind of input",),
    )


def _version(framework: str) -> str:
    module = sys.modules.get(framework)
    return str(getattr(module, "__version__", ""))


def _root_of(captured: Any, kind: str, graph: Graph, encoder: Encoder, holder: Any) -> JSON:
    """What holds the attributes that the graph reads, and the modules that it calls."""
    if "module" in kind:
        return {"module": _module(captured, graph, encoder)}
    root = captured.root
    if kind == "function":
        held = dict(vars(root))
        state = sorted(held.pop("_state"))
        held.pop("_self")
        source = root.needed_by(graph) if holder is None else holder
        encoder.quiet |= _uncalled(source, graph)
        return {"live": [encoder.value(source), encoder.value(held), state]}
    if type(root) is SimpleNamespace:
        root = SimpleNamespace(**{name: one for name, one in vars(root).items() if type(one) is not WatchedVariables})
    return encoder.value(root, "the root of the graph")


def _uncalled(source: Any, graph: Graph) -> set[int]:
    """The modules that a graph never calls nor hands to anything, by their ids: only their attributes count. The one
    around all is called by whoever calls the program."""
    if not isinstance(source, sys.modules["torch"].nn.Module):
        return set()
    parts = dict(source.named_modules(remove_duplicate=False))
    found = [parts.get(path) for path in referred_paths(graph)]
    called = {id(part) for one in found if one is not None for part in one.modules()}
    return {id(part) for part in parts.values()} - called - {id(source)}


def _module(captured: Any, graph: Graph, encoder: Encoder) -> int:
    """A captured module: the parts that its graph needs, under the class that holds any parts."""
    state = captured._state_to_save()
    holder = sys.modules["torch"].nn.Module()
    vars(holder).update({name: value for name, value in state.items() if name not in ("meta", "_chosen_tracer")})
    encoder.quiet |= _uncalled(holder, graph)
    return encoder.module(holder)


def _stacks(graph: Graph, encoder: Encoder) -> list[JSON]:
    """The modules around each node, each way of them once, and the way of every node by its number."""
    ways: dict[str, int] = {}
    places = []
    for node in all_nodes(graph):
        stack = node.meta.get("nn_module_stack")
        way = None
        if stack:
            way = json.dumps([[key, path, encoder.label(kind)] for key, (path, kind) in stack.items()
                              if isinstance(kind, type)])  # fmt: skip
        places.append(-1 if way is None else ways.setdefault(way, len(ways)))
    return [[json.loads(way) for way in ways], places]


def _note_classes(graph: Graph, encoder: Encoder) -> None:
    """What records need that stand for classes which the graph's text names, of outputs say."""
    waiting: list[Any] = [(node.args, node.kwargs, node.target) for node in all_nodes(graph)]
    waiting += [(one.expected, *_leaves(one.subject)) for one in graph.guards]
    while waiting:
        value = waiting.pop()
        if isinstance(value, type) and not is_sure(value):
            encoder.note_class(value)
        elif isinstance(value, (list, tuple)):
            waiting += value
        elif isinstance(value, dict):
            waiting += [*value.keys(), *value.values()]


def _leaves(subject: Any) -> list[Any]:
    return list(getattr(subject, "args", ()))


@contextmanager
def _written(path: Path) -> Iterator[Path]:
    """A file that takes the place of ``path`` when it is complete."""
    if not path.parent.is_dir():
        raise BundleError(f"there is no folder {path.parent} to save in")
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    try:
        yield Path(name)
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    finally:
        Path(name).unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _add_aligned(file: zipfile.ZipFile, source: Path) -> None:
    """Add the weights as they are, the first number at a multiple of the alignment, so that they can be mapped into
    memory and calculated with as fast as elsewhere."""
    info = zipfile.ZipInfo(_WEIGHTS)
    with source.open("rb") as data:
        (header,) = struct.unpack("<Q", data.read(8))
    assert file.fp is not None
    before = file.fp.tell() + 30 + len(info.filename) + 20 + 4  # the zip's own header, a field for large files, ours
    fill = -(before + 8 + header) % weights.ALIGNMENT
    info.extra = struct.pack("<HH", _PADDING, fill) + bytes(fill)
    info.file_size = source.stat().st_size
    with source.open("rb") as data, file.open(info, "w", force_zip64=True) as target:
        while block := data.read(_BLOCK):
            target.write(block)


# ---- loading ---------------------------------------------------------------------------------------------------------


def load(path: str | os.PathLike[str], allow: Collection[str] | None = None) -> Any:
    """The captured program that a file holds.

    ``allow`` are the packages whose functions the graph may call, and full names of others; left out, it is the
    framework of the program. A class of outputs that is not among them becomes a record with the same fields.
    """
    found = Path(path)
    if not found.is_file():
        raise BundleError(f"{found} is a folder, and no bundle" if found.is_dir() else f"there is no file {found}")
    if isinstance(allow, str):
        allow = (allow,)
    try:
        with zipfile.ZipFile(found) as file:
            manifest = _manifest(file)
            return _loaded(manifest, _text(file), weights.Weights(found, *_place_of_weights(file, found)), allow)
    except (TextError, NotAllowed) as error:
        raise BundleError(error.what, where=error.where, why=error.why, fixes=error.fixes) from error
    except NotFound as error:
        raise BundleError(f"the file names something that is not here: {error}") from error
    except ClewError:
        raise
    except _MALFORMED as error:
        raise BundleError(f"{found} is no bundle, or is damaged: {type(error).__name__}: {error}") from error


def _manifest(file: zipfile.ZipFile) -> JSON:
    names = file.namelist()
    if sorted(names) != sorted((_MANIFEST, _GRAPH, _WEIGHTS, _CODE)):
        raise BundleError(f"this is no bundle: its files are {', '.join(sorted(names)[:8])}")
    manifest = json.loads(_read(file, _MANIFEST))
    if not isinstance(manifest, dict) or type(manifest.get("schema")) is not int:
        raise BundleError("the manifest of the file does not say its version")
    if not 1 <= manifest["schema"] <= SCHEMA:
        raise BundleError(
            f"the file has version {manifest['schema']} of the format, and this Clew reads up to {SCHEMA}",
            fixes=("install a newer Clew",),
        )
    if manifest.get("kind") not in _KINDS:
        raise BundleError(f"the file holds a program of an unknown kind, {manifest.get('kind')!r}")
    return manifest


def _read(file: zipfile.ZipFile, name: str) -> bytes:
    """A file of the zip, if it keeps to its limit, whatever size the zip claims."""
    with file.open(name) as data:
        found = data.read(_LIMITS[name] + 1)
    if len(found) > _LIMITS[name]:
        raise BundleError(f"{name} of the file is larger than {_LIMITS[name] >> 20} MB")
    return found


def _text(file: zipfile.ZipFile) -> str:
    return _read(file, _GRAPH).decode("utf-8")


def _place_of_weights(file: zipfile.ZipFile, path: Path) -> tuple[int, int]:
    """Where the bytes of the weights begin in the file, and how many they are."""
    info = file.getinfo(_WEIGHTS)
    if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
        raise BundleError("the weights of the file are compressed, so they cannot be read in place")
    with path.open("rb") as data:
        data.seek(info.header_offset)
        header = data.read(30)
        if header[:4] != b"PK\x03\x04":
            raise BundleError("the weights of the file are not where its table says")
        name, extra = struct.unpack_from("<HH", header, 26)
    return info.header_offset + 30 + name + extra, info.file_size


def _loaded(manifest: JSON, text: str, stored: weights.Weights, allow: Collection[str] | None) -> Any:
    framework = _KINDS[manifest["kind"]][0]
    permissions = Permissions((framework,) if allow is None and framework else allow or (), "load(path")
    permissions.missing = []
    permissions.records = {str(key): record_for(one) for key, one in manifest["classes"].items()}
    home_of_decoder, decoder_class = _DECODERS.get(framework, _PLAIN)
    kind = getattr(importlib.import_module(home_of_decoder), decoder_class)
    decoder: Decoder = kind(manifest, stored, permissions, _inside)
    decoder.framework = framework
    graph = _graph(manifest, text, decoder)
    _add_stacks(graph, manifest["stacks"], permissions)
    made = _rebuilt(manifest, graph, decoder)
    if permissions.missing:
        names = ", ".join(dict.fromkeys(permissions.missing))
        warnings.warn(f"calls that reach {names}, which is not allowed, will raise an error", stacklevel=3)
    return _lazily(made, manifest["lazy"], decoder) if "lazy" in manifest else made


def _lazily(first: Any, entry: JSON, decoder: Decoder) -> Any:
    """The captures of a lazy graph, of which the first is there."""
    captures = [first, *(_inside(one, decoder) for one in entry["others"])]
    if not all(isinstance(one, GraphFunction) for one in captures):
        raise BundleError("a capture of a lazy graph in the file is none")
    if entry["holder"] is None:
        return SavedCaptures(captures, str(entry["name"]))
    return importlib.import_module(_LAZY_MODULE).saved_module(decoder.value(entry["holder"]), captures)


def _graph(entry: JSON, text: str, decoder: Decoder) -> Graph:
    """The graph of a program, if it names only what it may."""
    objects = {mark: decoder.value(value) for mark, value in entry["objects"].items()}
    graph = parse_with(text, objects, decoder.permissions)
    check_variables(graph, decoder.permissions)
    return graph


def _inside(entry: JSON, decoder: Decoder) -> Any:
    """A program that another one calls."""
    if _KINDS[entry["kind"]][0] not in ("", decoder.framework):
        raise BundleError(f"the file has a program of the kind {entry['kind']!r} inside of another")
    return _rebuilt(entry, _graph(entry, str(entry["graph"]), decoder), decoder)


def _rebuilt(entry: JSON, graph: Graph, decoder: Decoder) -> Any:
    name, root = entry["name"], entry["root"]
    if type(name) is not str or not name.strip("<>").isidentifier():
        raise BundleError(f"the file gives its program a name that is none: {name!r}")
    _, home, class_name = _KINDS[entry["kind"]]
    kind = getattr(importlib.import_module(home), class_name)
    if "module" in entry["kind"]:
        found = decoder.of_framework("module", root["module"])
        return kind._from_saved(dict(vars(found)), graph, name)
    if entry["kind"] == "function":
        source, held, state = root["live"]
        live = sys.modules[kind.__module__].Live
        return kind(live(decoder.value(source), decoder.value(held), [str(one) for one in state]), graph, name)
    made: GraphFunction = kind(decoder.value(root), graph, name)
    return made


def _add_stacks(graph: Graph, stacks: JSON, permissions: Permissions) -> None:
    ways, places = stacks
    nodes = list(all_nodes(graph))
    if len(places) != len(nodes):
        raise BundleError("the manifest of the file is of another graph")
    known = [{key: (path, permissions.find(kind)) for key, path, kind in way} for way in ways]
    for node, place in zip(nodes, places, strict=True):
        if place >= 0:
            node.meta["nn_module_stack"] = dict(known[place])
