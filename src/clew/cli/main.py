"""The commands of ``clew``.

Each command finds a target, makes inputs, asks one function of Clew's, and prints what comes out, as text or with
``--json`` as data. Exit codes: 0 done; 1 the answer is no (not equal, different, refused by ``explain``, not usable); 2
the command is wrong; 3 the program cannot be captured; 4 a guard does not hold; 5 a file or the program is at fault.
Results go to the standard output, progress and errors to the standard error.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
from click.shell_completion import get_completion_class
from rich.console import Console

import clew
from clew import config
from clew.cli import doctor as doctors
from clew.cli import inputs, targets
from clew.errors import (
    CaptureError,
    ClewError,
    ExampleMismatch,
    GuardError,
    TraceError,
    TranslationError,
    UsageError,
    counted,
)
from clew.frameworks import PACKAGES
from clew.ir.source import hide_folder
from clew.viewer.page import PAGES

NO, USAGE, REFUSED, GUARDED, FAULT = 1, 2, 3, 4, 5
_PICTURES: dict[str, Callable[[Any], str]] = {
    ".svg": lambda captured: str(clew.to_svg(captured)),
    ".dot": lambda captured: str(clew.to_dot(captured)),
    ".mmd": lambda captured: str(clew.to_mermaid(captured)),
}
_SHELLS = ("bash", "zsh", "fish")
Command = Callable[..., Any]


def main(arguments: list[str] | None = None) -> None:
    """Run a command and exit; an error of Clew's is one message, without a traceback."""
    hide_folder(str(Path(click.__file__).parent))
    try:
        status = commands.main(arguments, prog_name="clew", standalone_mode=False)
    except click.exceptions.Abort:
        status = 130
    except click.ClickException as error:
        error.show()
        status = error.exit_code
    except ClewError as error:
        if config.debug_level():
            raise
        status = _told(str(error), _status_of(error))
    except OSError as error:
        if config.debug_level() or error.filename is None:
            raise
        status = _told(f"{error.filename}: {error.strerror}", FAULT)
    sys.exit(status if isinstance(status, int) else 0)


def _told(message: str, status: int) -> int:
    click.secho("error: ", fg="red", bold=True, nl=False, err=True)
    click.echo(message, err=True)
    return status


def _status_of(error: ClewError) -> int:
    if isinstance(error, UsageError):
        return USAGE
    if isinstance(error, GuardError):
        return GUARDED
    return REFUSED if isinstance(error, (CaptureError, TraceError, TranslationError)) else FAULT


# ---- what commands share ---------------------------------------------------------------------------------------------

_target = click.argument("target")
_inputs = click.argument("words", nargs=-1, metavar="[INPUT]...")
_json = click.option("--json", "as_json", is_flag=True, help="Print data instead of text.")
_allow = click.option("--allow", multiple=True, metavar="NAME", help="A package or name that a bundle may call.")
_output = click.option("-o", "--output", type=click.Path(path_type=Path), help="Write to this file.")


def _capturing(command: Command) -> Command:
    """The options of every command that captures a program."""
    options = [
        click.option("--framework", type=click.Choice(PACKAGES), help="Of the inputs; that of the target otherwise."),
        click.option("--seed", type=int, default=0, show_default=True, help="Of the random inputs."),
        click.option("--device", help="Where inputs and modules of PyTorch go."),
        click.option("--train", is_flag=True, help="Keep modules in training mode."),
        click.option("--dynamic", is_flag=True, help="Keep conditions on sizes and numbers in the graph."),
        click.option("--leaves", help='Modules that stay calls: "none", or a pattern of paths.'),
        _allow,
        _json,
    ]
    for option in reversed([_target, _inputs, *options]):
        command = option(command)
    return command


class Job:
    """A target with its inputs, and its capture when it is asked for."""

    def __init__(self, target: str, words: tuple[str, ...], options: dict[str, Any]) -> None:
        with progress(f"loading {target}"):
            self.target = targets.find(
                target, framework=options["framework"], allow=options["allow"], train=options["train"]
            )
            if options["device"] and hasattr(self.target.program, "to"):
                self.target.program.to(options["device"])
        self.inputs = inputs.read(words, self.target.framework, options["seed"], options["device"])
        self._options = {"dynamic": options["dynamic"]} | ({"leaves": options["leaves"]} if options["leaves"] else {})

    def captured(self) -> Any:
        """The captured program: that of a bundle, or a new one."""
        if self.target.is_captured:
            return self.target.program
        with progress(f"capturing {self.target.name}"), _program_fails():
            return clew.trace(self.target.program, self.inputs.args, self.inputs.kwargs, **self._options)

    def explained(self) -> Any:
        """What ``clew.explain`` says of the program."""
        if self.target.is_captured:
            raise UsageError("a bundle holds a capture already", fixes=["clew show", "clew trace"])
        with progress(f"capturing {self.target.name}"):
            return clew.explain(self.target.program, *self.inputs, **self._options)


@contextlib.contextmanager
def _program_fails() -> Iterator[None]:
    """An error of the program itself is told in one message, like those of Clew."""
    try:
        yield
    except ExampleMismatch as error:
        raise UsageError(error.what, fixes=[f"inputs look like {inputs.FORMS}"]) from error
    except ClewError:
        raise
    except Exception as error:
        raise targets.failed("the program failed on these inputs", error) from error


@contextlib.contextmanager
def progress(what: str) -> Iterator[None]:
    """A spinner while something takes time; nothing where nobody looks at a terminal."""
    console = Console(stderr=True)
    with console.status(what) if console.is_terminal else contextlib.nullcontext():
        yield


def _say(text: str, data: Any, as_json: bool) -> None:
    click.echo(json.dumps(data, indent=2, default=str) if as_json else text)


# ---- commands --------------------------------------------------------------------------------------------------------


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(clew.__version__, prog_name="clew")
def commands() -> None:
    """Capture tensor programs, and read, check, profile and keep what comes out.

    \b
    A TARGET is package.module:name, file.py:name or a bundle (model.clew, or model.clew:1 for one
    of the captures of a lazy graph). A class is instantiated without arguments; a function that
    takes none is called and returns the program.
    \b
    An INPUT is an array with random numbers or one from a file, or a plain value:
      x=f32[2,3,224,224]   ids=i64[2,8]<1000   mask=bool[2,8]   n=3   flag=true
      x=image.npy          x=data.npz:image    inputs.safetensors
    \b
    Examples:
      clew trace models.py:Net x=f32[2,4] -o net.clew
      clew code package.module:make_model ids=i64[1,16]<1000
      clew verify net.py:Net x=f32[2,4]
      clew diff before.clew after.clew
    \b
    Exit codes: 0 done, 1 the answer is no, 2 wrong command, 3 cannot be captured,
    4 a guard does not hold, 5 a file or the program's own code is at fault.
    """


@commands.command()
@_capturing
@_output
def trace(target: str, words: tuple[str, ...], as_json: bool, output: Path | None, **options: Any) -> None:
    """Capture a program and say what came out; -o saves it.

    \b
    clew trace models.py:Net x=f32[2,4] -o net.clew
    """
    job = Job(target, words, options)
    captured = job.captured()
    nodes = list(captured.graph.nodes)
    inner: dict[str, Any] = {
        "target": target, "framework": job.target.framework, "inputs": job.inputs.described(), "nodes": len(nodes),
        "guards": [str(one) for one in captured.guards], "saved": None if output is None else str(output),
    }  # fmt: skip
    if output is not None:
        clew.save(captured, output)
    lines = [
        f"{target}: captured, {counted(len(nodes), 'node')}, "
        f"{counted(len(captured.guards), 'guard')} ({job.target.framework})"
    ]
    lines += [f"inputs: {', '.join(inner['inputs'])}"] if words else []
    lines += [str(captured.guards)] if captured.guards else []
    lines += [f"saved as {output}"] if output is not None else []
    _say("\n".join(lines), inner, as_json)


@commands.command()
@_capturing
@click.option("--table", is_flag=True, help="A table of the nodes instead of the text.")
def show(target: str, words: tuple[str, ...], as_json: bool, table: bool, **options: Any) -> None:
    """Print the graph of a program.

    \b
    clew show models.py:Net x=f32[2,4]
    clew show net.clew --table
    """
    graph = Job(target, words, options).captured().graph
    text, objects = clew.text_and_objects(graph)
    fields = ("name", "op", "target", "args", "kwargs")
    rows = [{field: str(getattr(node, field)) for field in fields} for node in graph.nodes]
    if table and not as_json:
        graph.print_tabular()
        return
    _say(text, {"text": text, "objects": {mark: repr(one) for mark, one in objects.items()}, "nodes": rows}, as_json)


@commands.command()
@_capturing
@click.option("--folder", type=click.Path(path_type=Path), help="Write source and weights that run without Clew.")
def code(target: str, words: tuple[str, ...], as_json: bool, folder: Path | None, **options: Any) -> None:
    """Print the generated Python of a program; --folder writes it for use without Clew.

    \b
    clew code models.py:Net x=f32[2,4]
    clew code models.py:Net x=f32[2,4] --folder standalone
    """
    captured = Job(target, words, options).captured()
    if folder is not None:
        captured.to_python(folder)
    found = captured.code
    _say(found.strip("\n"), {"code": found}, as_json)


@commands.command()
@_capturing
def explain(target: str, words: tuple[str, ...], as_json: bool, **options: Any) -> int:
    """Say what a capture holds and relies on, or why there is none.

    \b
    clew explain models.py:Net x=f32[2,4]
    """
    found = Job(target, words, options).explained()
    _say(str(found), found.to_dict(), as_json)
    return 0 if found.captured else NO


@commands.command()
@_capturing
@click.option("--against", help="The original of a bundle: another TARGET.")
@click.option("--atol", type=float, default=0.0, show_default=True)
@click.option("--rtol", type=float, default=0.0, show_default=True)
def verify(
    target: str, words: tuple[str, ...], as_json: bool, against: str | None, atol: float, rtol: float, **options: Any
) -> int:
    """Compare a capture with the original: values, effects, gradients, other batch sizes.

    \b
    clew verify models.py:Net x=f32[2,4]
    clew verify net.clew --against models.py:Net x=f32[2,4]
    """
    job = Job(target, words, options)
    original = job.target.program
    if job.target.is_captured:
        if against is None:
            raise UsageError("a bundle does not hold its original", fixes=["--against file.py:name"])
        original = targets.find(against, framework=options["framework"], train=options["train"]).program
    captured = job.captured()
    with progress("comparing"):
        found = clew.verify(captured, original, tuple(job.inputs), atol=atol, rtol=rtol)
    _say(str(found), found.to_dict(), as_json)
    return 0 if found.ok else NO


@commands.command()
@_capturing
@click.option("--by", default="", help="The column to sort nodes by: seconds, macs, bytes.")
@click.option("--limit", type=int, default=20, show_default=True, help="How many rows.")
def profile(target: str, words: tuple[str, ...], as_json: bool, by: str, limit: int, **options: Any) -> None:
    """Measure time, FLOPs and memory, by module and by node.

    \b
    clew profile models.py:Net x=f32[2,4]
    """
    job = Job(target, words, options)
    captured = job.captured()
    with progress("measuring"):
        found = clew.profile(captured, *job.inputs.args, **job.inputs.kwargs)
    _say(found.table(by, limit) if by else str(found), found.to_dict(), as_json)


@commands.command()
@_capturing
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="The file to write.")
@click.option("--colours", is_flag=True, help="Run once, and colour by time, memory or FLOPs.")
def view(target: str, words: tuple[str, ...], as_json: bool, output: Path, colours: bool, **options: Any) -> None:
    """Draw the graph of a program as one HTML file, or as .svg, .dot or .mmd.

    \b
    clew view models.py:Net x=f32[2,4] -o net.html
    clew view net.clew -o net.svg
    """
    draw = _PICTURES.get(output.suffix)
    if draw is None and output.suffix not in PAGES:
        known = ", ".join((*PAGES, *_PICTURES))
        raise UsageError(f"{output} has an ending that no picture has", fixes=[f"one of {known}"])
    job = Job(target, words, options)
    captured = job.captured()
    with progress("drawing"):
        if draw is not None:
            output.write_text(draw(captured), encoding="utf-8")
        else:
            profile = clew.profile(captured, *job.inputs.args, **job.inputs.kwargs) if colours else None
            clew.view(captured, output, profile=profile)
    size = output.stat().st_size
    _say(f"{output}: {size} bytes", {"path": str(output), "bytes": size}, as_json)


@commands.command()
@click.argument("before")
@click.argument("after")
@click.option("--weights", is_flag=True, help="Compare weights, too.")
@click.option("--unified", is_flag=True, help="Lines of the two texts instead of a table.")
@click.option("--html", type=click.Path(path_type=Path), help="Write a page with the two side by side.")
@_allow
@_json
def diff(
    before: str, after: str, weights: bool, unified: bool, html: Path | None, allow: tuple[str, ...], as_json: bool
) -> int:
    """Say what has changed from one bundle, or text of a graph, to another.

    \b
    clew diff before.clew after.clew
    """
    with progress("comparing"):
        found = clew.diff(*(targets.graph_of(one, allow) for one in (before, after)), weights=weights)
        if html is not None:
            found.view(html)
    _say(found.unified() if unified else str(found), found.to_dict(), as_json)
    return NO if found else 0


@commands.command()
@_capturing
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="The bundle to write.")
def save(target: str, words: tuple[str, ...], as_json: bool, output: Path, **options: Any) -> None:
    """Capture a program and save it as a bundle.

    \b
    clew save models.py:Net x=f32[2,4] -o net.clew
    """
    captured = Job(target, words, options).captured()
    with progress("saving"):
        clew.save(captured, output)
    size = output.stat().st_size
    _say(f"{output}: {size} bytes", {"path": str(output), "bytes": size}, as_json)


@commands.command()
@_capturing
@click.option("--to", required=True, type=click.Choice(PACKAGES), help="The framework to translate to.")
@click.option("--dry-run", is_flag=True, help="Only list what has no equal there.")
def translate(target: str, words: tuple[str, ...], as_json: bool, to: str, dry_run: bool, **options: Any) -> int:
    """Translate a program to another framework, and print its code there.

    \b
    clew translate models.py:Net x=f32[2,4] --to jax
    """
    job = Job(target, words, options)
    if job.target.framework == to:
        why = "the inputs are arrays of what the module of the target imports" if options["framework"] is None else ""
        others = [f"--framework {one}" for one in PACKAGES if one != to]
        raise UsageError(f"{target} is taken for a program of {to} already", why=why, fixes=others)
    captured = job.captured()
    with progress(f"translating to {to}"):
        found = clew.translate(captured, to=to, dry_run=dry_run)
    if dry_run:
        lines = [str(one) for one in found]
        _say("\n".join(lines) or f"all of it has an equal in {to}", {"missing": lines}, as_json)
        return NO if lines else 0
    _say(found.code.strip("\n"), {"code": found.code}, as_json)
    return 0


@commands.command()
@_json
def doctor(as_json: bool) -> int:
    """Say what is installed, and which versions Clew was tested with."""
    found = doctors.examine()
    width = max(len(one.package) for one in found)
    lines = [f"{one.package:<{width}}  {one.installed:<12}  tested: {one.tested:<20}  {one.state}" for one in found]
    usable = doctors.is_usable(found)
    lines.append("Clew can run here." if usable else "Clew cannot run here: a package is missing or too old.")
    _say("\n".join(lines), {"clew": clew.__version__, "usable": usable, "packages": [one.to_dict() for one in found]},
         as_json)  # fmt: skip
    return 0 if usable else NO


@commands.command()
@click.argument("shell", type=click.Choice(_SHELLS))
def completion(shell: str) -> None:
    """Print what makes a shell complete commands and options.

    \b
    eval "$(clew completion bash)"
    """
    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(commands, {}, "clew", "_CLEW_COMPLETE").source())


if __name__ == "__main__":
    main()
