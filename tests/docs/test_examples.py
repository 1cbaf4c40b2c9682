"""Every block of Python in the documents runs, in order, and prints what the document says it prints."""

from __future__ import annotations

import contextlib
import doctest
import io
import linecache
import re
import sys
import types
from pathlib import Path

import pytest

from .examples import Example, examples_in

ROOT = Path(__file__).resolve().parents[2]
PAGES = (*sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "errors").glob("*.md")))
DOCUMENTS = [path for path in (ROOT / "README.md", *PAGES) if path.exists()]


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """An empty folder as the current one, importable from; what was imported from it is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def place(request, monkeypatch):
    """A module for the examples of one document, known to pickle and to whoever reads source lines."""
    document = request.param
    module = types.ModuleType(f"examples_of_{document.stem.lower()}")
    module.__file__ = str(document)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    yield module
    linecache.checkcache(str(document))


def run(example: Example, place: types.ModuleType) -> str:
    """Run one block; its lines have the numbers that they have in the document."""
    filename = str(place.__file__)
    code = compile("\n" * (example.line - 1) + example.source, filename, "exec", dont_inherit=True)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, vars(place))
    return printed.getvalue()


def check_output(example: Example, printed: str) -> None:
    """Compare what was printed with what was promised, spaces at the ends of lines left aside."""
    if example.prints is None:
        return
    wanted, got = (_trimmed(text) for text in (example.prints, printed))
    checker = doctest.OutputChecker()
    if not checker.check_output(wanted, got, doctest.ELLIPSIS):
        pytest.fail(f"the block at line {example.line} promises\n{wanted}\nbut prints\n{got}", pytrace=False)


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines()) + "\n"


@pytest.mark.parametrize(
    ("place", "document"),
    [(path, path) for path in DOCUMENTS],
    indirect=["place"],
    ids=[path.stem for path in DOCUMENTS],
)
def test_examples_run(place, document, workplace):
    for example in examples_in(document.read_text()):
        check_output(example, run(example, place))


def test_guides_have_examples():
    for name in ("symbolic_tracing", "editing_graphs", "from_torch_fx"):
        found = examples_in((ROOT / "docs" / f"{name}.md").read_text())
        assert any(example.prints for example in found), f"docs/{name}.md shows no output"


def test_blocks_are_found_with_their_lines_and_output():
    promising = "# Title\n\n```python\na = 1\n```\n\nprints:\n\n```text\n1\n```\n"
    text = promising + "\n```sh\nls\n```\n```python\nb\n```\n```text\nno\n```\n"
    assert examples_in(text) == [Example(4, "a = 1\n", "1\n"), Example(17, "b\n", None)]


@pytest.mark.parametrize("printed", ["one\nthree\n", ""])
def test_wrong_output_is_found(printed):
    with pytest.raises(pytest.fail.Exception, match="line 1"):
        check_output(Example(1, "", "one\ntwo\n"), printed)


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda path: path.stem)
def test_files_that_a_page_names_are_there(page):
    """A path leads from the root or from one of these folders; a name alone is that of some file."""
    folders = [ROOT / name for name in ("src", "tests", "benchmarks", "examples")]
    known = {path.relative_to(ROOT).as_posix() for folder in folders for path in folder.rglob("*.py")}
    named = re.findall(r"`((?:\w+/)*\w+\.py)`", page.read_text())
    missing = [name for name in named if not any(path == name or path.endswith("/" + name) for path in known)]
    assert missing == []


@pytest.mark.parametrize(
    "page", [*DOCUMENTS, *sorted((ROOT / "docs" / "dev").glob("*.md"))], ids=lambda path: path.stem
)
def test_links_lead_somewhere(page):
    """To a file, and where they name one to a heading in it."""
    broken = []
    prose = re.sub(r"(?s)^```.*?^```|`[^`\n]*`", "", page.read_text(), flags=re.MULTILINE)
    for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", prose):
        path, _, heading = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (heading and heading not in _headings(target.read_text())):
            broken.append(link)
    assert broken == []


def _headings(text: str) -> set[str]:
    """The headings of a document as links write them."""
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\s-]", "", title.lower()).strip().replace(" ", "-") for title in titles}
