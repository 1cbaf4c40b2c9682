"""``view``: a graph as one HTML file that needs nothing else.

A captured program, or a graph, comes in, perhaps with a profile or with what it was before a pass; a ``View`` comes
out, which notebooks show and which is saved as a file. Always holds: the file loads nothing from anywhere, and text
of the graph is data in it: a name can hold any characters and is never read as markup or as code.
"""

from __future__ import annotations

import functools
import html
import json
import tempfile
import webbrowser
from importlib.resources import files
from pathlib import Path
from typing import Any

from clew.errors import ClewError, a_or_an
from clew.tools.diff import diff
from clew.tools.profile import Profile
from clew.viewer.document import document_of
from clew.viewer.picture import picture_of

PAGES = (".html", ".htm")
"""The endings of files that browsers show."""
NOTEBOOK_NODES = 3000
"""How many steps a view in a notebook may have before it leaves out code and source lines, to keep the notebook
small."""
NOTEBOOK_HEIGHT = 560
_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="clew">
<title>{title}</title>
</head>
<body>
<noscript>This page draws the graph with JavaScript, which is turned off.</noscript>
<script type="application/json" id="clew-data">{data}</script>
<script>
{script}</script>
</body>
</html>
"""


class View:
    """A picture of a graph. A notebook shows it; ``save`` writes it to a file, ``open`` opens it in a browser."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document

    @property
    def html(self) -> str:
        """The whole page."""
        return page(self.document)

    def save(self, path: str | Path) -> Path:
        """Write the page to a file, which can be sent to anybody."""
        found = Path(path)
        if found.suffix not in PAGES:
            raise ClewError(
                f"{found} has an ending that no page has",
                fixes=[
                    f"end it in {' or '.join(PAGES)}",
                    "clew.to_svg, clew.to_dot, clew.to_mermaid draw other pictures",
                ],
            )
        found.write_text(self.html, encoding="utf-8")
        return found

    def open(self) -> Path:
        """Open the page in the browser; gives the file, which lies in the folder for temporary files."""
        with tempfile.NamedTemporaryFile("w", suffix=".html", prefix="clew-", delete=False, encoding="utf-8") as file:
            file.write(self.html)
        webbrowser.open(Path(file.name).as_uri())
        return Path(file.name)

    def _repr_html_(self) -> str:
        return notebook_frame(self.document)

    def __repr__(self) -> str:
        count = sum("box" not in part for part in self.document["graphs"][-1]["parts"])
        return f'<view of {self.document["title"]}, {count} steps: .save("view.html") writes it, .open() shows it>'


def view(captured: Any, path: str | Path | None = None, profile: Profile | None = None, before: Any = None) -> View:
    """A picture of a captured program or a graph: one HTML file, written to ``path`` if that is given.

    ``profile``, from ``clew.profile``, colours it by time, memory or FLOPs. ``before`` is the program before a pass:
    the two stand side by side, and what has changed is marked.
    """
    if profile is not None and not isinstance(profile, Profile):
        raise ClewError(f"profile= takes what clew.profile returns, not {a_or_an(profile)}")
    after = picture_of(captured)
    if before is None:
        found = View(document_of(after, profile))
    else:
        found = View(document_of(after, profile, picture_of(before), diff(before, captured)))
    if path is not None:
        found.save(path)
    return found


@functools.cache
def script() -> str:
    """The program of the page, bundled from ``view_app``."""
    return files("clew.viewer").joinpath("static/view.js").read_text(encoding="utf-8")


def page(document: dict[str, Any]) -> str:
    """The HTML of a document."""
    title = html.escape(f"{document['title']} · Clew")
    return _PAGE.format(policy=_POLICY, title=title, data=embedded(document), script=script())


def embedded(data: Any) -> str:
    """JSON that may stand in a script element: no character of it can end the element or begin a comment."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def notebook_frame(document: dict[str, Any]) -> str:
    """A view as an element of a notebook: a frame of its own, which reaches nothing of the page around it."""
    count = sum(len(graph["parts"]) for graph in document["graphs"])
    if count > NOTEBOOK_NODES:
        graphs = [
            {**graph, "code": "", "sources": [], "parts": [*map(_lean, graph["parts"])]} for graph in document["graphs"]
        ]
        document = {**document, "graphs": [{**graph, "guards": []} for graph in graphs]}
    inner = html.escape(page(document), quote=True)
    style = f"width:100%;height:{NOTEBOOK_HEIGHT}px;border:1px solid #8884;border-radius:10px"
    title = html.escape(f"Graph of {document['title']}", quote=True)
    return f'<iframe title="{title}" sandbox="allow-scripts" style="{style}" srcdoc="{inner}"></iframe>'


def _lean(part: dict[str, Any]) -> dict[str, Any]:
    """A part without what takes most room."""
    return {key: value for key, value in part.items() if key not in ("args", "settings", "source", "lines")}
