"""How large files, functions and classes may be, and what is above that today: `python -m tests.architecture.limits`.

In come the modules of Clew by name, with their texts; out go sentences, empty when every limit is kept. What does not
keep a limit yet stands in `limits.json` with its figure: the figure may not grow, and a name that needs no exception
any more must go. `--write` lowers the figures and takes out such names; it adds none.

A file that one other file alone imports is a chapter torn out, unless it is an idea of its own: those are named in
`IDEAS`, each with the reason.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.architecture.measure import attributes_of_classes, single_importers, sources_of
from tests.architecture.project import ROOT, parsed

FILE = Path(__file__).with_name("limits.json")
Sources = dict[str, str]
Figures = dict[str, int]

COLLABORATORS = frozenset(
    "recorder state surroundings run paths regions loop runtime support memory snapshot listener patches territory"
    " tracer".split()
)
"""What the objects of a capture are called where they are handed on; each has a class, or a protocol."""

OF_EACH_FRAMEWORK = frozenset(
    "guest capture recorder effects names types caches scalars entry_guards interception importer".split()
)
"""Files that have the same names in the folder of each framework: whoever knows one finds the way in all."""

IDEAS = {
    "translate.guards": "the guards of a translated program",
    "translate.observed": "a run of the original of its own",
    "translate.rows.torch_recurrent": "one kind of rows",
    "translate.sources.torch_decompositions": "torch's tracer and its decompositions",
    "translate.rows.torch_by_data": "one kind of rows",
    "translate.rows.torch_complex": "one kind of rows",
    "translate.rows.torch_linalg": "one kind of rows",
    "translate.rows.torch_plain": "one kind of rows",
    "translate.rows.torch_strides": "one kind of rows",
    "translate.sources.torch_functions": "functions that take functions, which have bodies of their own",
    "translate.rows.torch_layers": "one kind of rows",
    "translate.rows.torch_python": "one kind of rows",
    "translate.rows.torch_reductions": "one kind of rows",
    "translate.sources.torch_modules": "entering layers is a pass over the graph",
    "backends.cuda_graphs": "a back end of its own, found by its name",
    "backends.compile": "a question of the public surface, one file each",
    "backends.backward": "a question of the public surface, one file each",
    "backends.checkpoint": "an algorithm: what to save of the forward pass, and what to compute again",
    "capture.bytecode.with_managers": "a question of its own: which context managers keep errors to themselves",
    "capture.control_flow.liveness": "an analysis of source: which variables a piece of it sets and reads",
    "capture.control_flow.loops": "how one loop becomes a node",
    "capture.control_flow.recordings": "an algorithm: what the recordings of all paths have in common",
    "capture.control_flow.rewrite": "a transformation of source: branches and loops as calls",
    "codegen.control_flow": "statements with blocks, beside those without in codegen.statements",
    "codegen.layout": "what is decided before the first line is written",
    "io.onnx": "a format of its own, and a question of the public surface",
    "tools.explain_match": "a tool of its own: why a pattern is found or not",
    "cli.doctor": "what is installed, beside what the other commands ask of a program",
    "cli.inputs": "the notation of inputs on a command line",
    "cli.targets": "the notation of programs on a command line",
    "cli.main": "the commands; the other importer is the shell",
    "frameworks.jax.control_flow": "equations with bodies",
    "frameworks.torch.modules.calls": "how the call of one module becomes nodes",
    "frameworks.torch.modules.scripted": "what modules compiled by torch.jit keep",
    "frameworks.torch.modules.leaf_expressions": "a table: torch's small modules as expressions",
    "frameworks.torch.preserved_notes": "what torch.fx.traceback keeps, as torch.fx does",
    "frameworks.torch.sizes.rules_of_parts": "a table of rules, judged against torch's own operators",
    "frameworks.torch.settings": "torch's door to settings of the process, as Python's doors each have a file",
    "frameworks.torch.symbolic": "what a symbolic trace sees of torch, and asks of it",
    "frameworks.torch.transforms.interception": "which calls take functions, beside how these are recorded",
    "fx.installation": "a question of the public surface, one file each",
    "fx._symbolic_trace": "a module of torch.fx, found under its name",
    "io.decompose": "a format of its own, one file each",
    "io.jaxpr": "a format of its own, one file each",
    "io.tensorflow_graph": "a format of its own, one file each",
    "io.torchscript": "a format of its own, one file each",
    "io.torchscript_operators": "a table: what each operator is in Python",
    "passes.extract": "a pass, one file each",
    "passes.quantize": "a pass, one file each",
    "passes.split": "a pass, one file each",
    "passes.flatten": "a pass, one file each",
    "passes.fold_runs": "a pass, one file each",
    "passes.module_regions": "an analysis that passes stand on",
    "passes.storages": "an analysis that passes stand on",
    "passes.gather": "an algorithm: nodes are brought together without changing what is computed",
    "runtime.folder": "the format on disk",
    "frameworks.tensorflow.function_traces": "what functions of TensorFlow go on with, whatever programs do",
    "runtime.package": "a format of its own, one file each",
    "runtime.embedded_source": "functions of Clew as source, beside the file that they are written into",
    "runtime.framework_compilers": "captures under compilers of the frameworks",
    "runtime.tensorflow_captured": "what a captured program is, one file for each framework",
    "tools.compare_numpy": "how calls are compared, one file for each framework",
    "tools.explain": "a question of the public surface, one file each",
    "tools.extract": "a question of the public surface, one file each",
    "tools.split": "a question of the public surface, one file each",
    "tools.nested": "a question of the public surface, one file each",
    "tools.pipeline": "a question of the public surface, one file each",
    "tools.report": "a question of the public surface, one file each",
    "translate.rows.jax_random": "one kind of rows",
    "translate.sources.jax_functions": "functions that take functions, which have bodies of their own",
    "translate.rows.tensorflow_layers": "one kind of rows",
    "translate.sources.tensorflow_flow": "branches and loops, which have bodies of their own",
    "viewer.layered": "an algorithm: where the parts of a drawing stand",
    "viewer.svg": "a question of the public surface, one file each",
}
"""Files with a single importer that stand by themselves nevertheless."""


def lines_of_files(sources: Sources) -> Figures:
    """How long each module is."""
    return {_short(name): len(text.splitlines()) for name, text in sources.items()}


def lines_of_functions(sources: Sources) -> Figures:
    """How long each function is, from its first line to its last."""
    return {name: (node.end_lineno or node.lineno) - node.lineno + 1 for name, node in _functions(sources)}


def parameters_of_functions(sources: Sources) -> Figures:
    """How many parameters each function has; `self` is none, and neither are the options of the public surface."""
    counted = ((name, [one.arg for one in _all(node, _is_public(name))]) for name, node in _functions(sources))
    return {name: len(set(names) - {"self", "cls"}) for name, names in counted}


def _is_public(name: str) -> bool:
    """Whether a function is one that users call: what it takes by keyword alone is an option, held by `surface.txt`."""
    room, _, own = name.partition(".")
    return room == "api" and not own.startswith("_") and "." not in own


def untyped_collaborators(sources: Sources) -> Figures:
    """How many parameters and attributes of each module are called like a collaborator and typed `Any`."""
    return {_short(name): sum(map(_is_untyped, ast.walk(parsed(text)))) for name, text in sources.items()}


def satellites(sources: Sources) -> Figures:
    """The modules with a single importer that no reason is given for."""
    names = map(_short, single_importers(sources))
    found = [name for name in names if name not in IDEAS and not _is_of_each_framework(name)]
    return {name: 1 for name in found if not _is_pass(name, sources)}


LIMITS: dict[str, tuple[int, Callable[[Sources], Figures]]] = {
    "lines of a file": (800, lines_of_files),
    "lines of a function": (60, lines_of_functions),
    "attributes of a class": (20, attributes_of_classes),
    "parameters of a function": (8, parameters_of_functions),
    "collaborators typed Any": (0, untyped_collaborators),
    "files with one importer and no reason": (0, satellites),
}
"""What is counted, how much of it there may be, and who counts it."""


def broken(figures: Figures, most: int, exceptions: Figures) -> list[str]:
    """What is over a limit and no exception, or has grown; and the exceptions that nobody needs any more."""
    over = {name: figure for name, figure in figures.items() if figure > max(most, exceptions.get(name, 0))}
    found = [f"{name}: {figure}, more than {max(most, exceptions.get(name, 0))}" for name, figure in over.items()]
    needless = [name for name in exceptions if figures.get(name, 0) <= most]
    return found + [f"{name}: an exception that is no longer needed" for name in needless]


def tightened(figures: Figures, most: int, exceptions: Figures) -> Figures:
    """The exceptions that are still needed, none higher than it must be."""
    return {name: min(figure, figures[name]) for name, figure in exceptions.items() if figures.get(name, 0) > most}


def read_exceptions() -> dict[str, Figures]:
    """Today's exceptions by limit."""
    stored: dict[str, Figures] = json.loads(FILE.read_text(encoding="utf-8"))
    return {limit: stored.get(limit, {}) for limit in LIMITS}


def _short(name: str) -> str:
    return name.removeprefix("clew.")


def _is_of_each_framework(name: str) -> bool:
    parts = name.split(".")
    return parts[0] == "frameworks" and len(parts) == 3 and parts[-1] in OF_EACH_FRAMEWORK


def _is_pass(name: str, sources: Sources) -> bool:
    """Whether a file is a pass, which has its name: one file each."""
    room, _, own = name.partition(".")
    imported = rf"from clew\.passes\.{own} import [^\n]*\b{own}\b"
    return room == "passes" and re.search(imported, sources["clew.__init__"]) is not None


def _functions(sources: Sources) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for name, text in sources.items():
        yield from _inside(parsed(text), _short(name))


def _inside(node: ast.AST, path: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for child in ast.iter_child_nodes(node):
        is_function = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))
        name = f"{path}.{child.name}" if is_function or isinstance(child, ast.ClassDef) else path
        if is_function:
            yield name, child
        yield from _inside(child, name)


def _all(function: ast.FunctionDef | ast.AsyncFunctionDef, without_options: bool = False) -> list[ast.arg]:
    named = function.args
    packed = [parameter for parameter in (named.vararg, named.kwarg) if parameter is not None]
    return [*named.posonlyargs, *named.args, *(() if without_options else named.kwonlyargs), *packed]


def _is_untyped(node: ast.AST) -> bool:
    if isinstance(node, ast.arg):
        name, annotation = node.arg, node.annotation
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Attribute):
        name, annotation = node.target.attr, node.annotation
    else:
        return False
    return name in COLLABORATORS and annotation is not None and ast.unparse(annotation) in ("Any", "Any | None")


def main(arguments: list[str] | None = None) -> int:
    """Prints what breaks a limit, and tightens the exceptions if asked to."""
    parser = argparse.ArgumentParser(prog="python -m tests.architecture.limits", description=__doc__)
    parser.add_argument("--write", action="store_true", help="lower the exceptions to what is measured now")
    options = parser.parse_args(arguments)
    sources, exceptions = sources_of(ROOT), read_exceptions()
    figures = {limit: measure(sources) for limit, (_, measure) in LIMITS.items()}
    if options.write:
        exceptions = {limit: tightened(figures[limit], LIMITS[limit][0], known) for limit, known in exceptions.items()}
        FILE.write_text(json.dumps(exceptions, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    found = {limit: broken(figures[limit], LIMITS[limit][0], known) for limit, known in exceptions.items()}
    for limit, sentences in found.items():
        print(f"{limit}: at most {LIMITS[limit][0]}, {len(exceptions[limit])} exceptions", *sentences, sep="\n  ")
    return int(any(found.values()))


if __name__ == "__main__":
    sys.exit(main())
