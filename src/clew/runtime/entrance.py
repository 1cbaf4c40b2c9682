"""The guards at the entrance of generated code, as a quick test of whether a call could fit.

Generated code comes in; out comes a function of the same arguments that is false where one of the guards before the
first operation would be called. Such a guard may still be content; and true says nothing of the guards further down.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from types import FunctionType
from typing import Any

from clew.capture.example.guards import CHECKS
from clew.codegen.python import PythonCode

_FREED = re.compile(r"    (\w+ = )+None")
_TEST = re.compile(r"    if .*:")
_CHECK = re.compile(r"        (\w+)\(")


def entrance_test(code: PythonCode, function: FunctionType) -> Callable[..., bool] | None:
    """The test of a graph's code; None if no guard stands at its entrance."""
    lines = code.src.split("\n")
    start = next((place for place, line in enumerate(lines) if line.startswith(f"def {code.name}(")), None)
    if start is None or not lines[start].endswith(":"):
        return None
    written = [lines[start]]
    for line, following in itertools.pairwise(lines[start + 1 :]):
        check = _CHECK.match(following)
        if _TEST.fullmatch(line) and check is not None and function.__globals__.get(check[1]) in CHECKS:
            written += [line, "        return False"]
        elif not (_FREED.fullmatch(line) or _CHECK.match(line)):
            break
    if len(written) == 1:
        return None
    names: dict[str, Any] = dict(function.__globals__)
    source = "\n".join([*written, "    return True", ""])
    exec(compile(source, "<clew entrance>", "exec", dont_inherit=True), names)
    found: Callable[..., bool] = names[code.name]
    return found
