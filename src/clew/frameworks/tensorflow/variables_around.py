"""Variables around a function that it sets inside of branches and loops: AutoGraph loses them.

The code of a function comes in, as it is written and as AutoGraph has converted it, or what a branch sets. Nothing
goes out: what AutoGraph makes a local variable of, or takes for unused, is refused.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from types import CodeType
from typing import TYPE_CHECKING, Any

from clew.capture.bytecode.instructions import instructions_of
from clew.errors import CaptureError

if TYPE_CHECKING:
    from clew.frameworks.tensorflow.tracing import Tracing


def check_bodies(tracing: Tracing, code: CodeType, converted: CodeType) -> None:
    """Refuse variables around a function of which AutoGraph makes local ones of branches and loops."""
    lost = _set_around(code) & _locals_of_bodies(converted)
    if lost:
        _refuse_lost(tracing, lost)


def _refuse_lost(tracing: Tracing, names: set[str]) -> CaptureError:
    return tracing.refuse(
        f"the program sets {', '.join(sorted(names))}, around it, inside of a branch or loop",
        "AutoGraph makes a local variable of it there, and so it would stay what it was",
        "set a local variable there, and the one around the program after it",
    )


def _set_around(code: CodeType) -> set[str]:
    """The variables that a function sets, global ones and those of functions around it."""
    found = instructions_of(code)
    names = {str(one.argval) for one in found if one.opname == "STORE_GLOBAL"}
    return names | {str(one.argval) for one in found if one.opname == "STORE_DEREF" and one.argval in code.co_freevars}


_BODY = re.compile(r"(if_body|else_body|loop_body)(_\d+)?$")


def _locals_of_bodies(code: CodeType) -> set[str]:
    """The local variables of the functions that AutoGraph makes of branches and loops."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    own = [{*one.co_varnames, *one.co_cellvars} for one in inner if _BODY.match(one.co_name)]
    return set[str]().union(*own, *map(_locals_of_bodies, inner))


def check_branch(tracing: Tracing, set_state: Any, dropped: Iterable[str]) -> None:
    """Raise if a branch sets variables around the function that it stands in: AutoGraph takes them for unused."""
    around, file = _set_around(set_state.__code__), set_state.__code__.co_filename
    frame = sys._getframe(1)
    while frame.f_back is not None and (frame.f_code.co_filename != file or _BODY.match(frame.f_code.co_name)):
        frame = frame.f_back
    local = {*frame.f_code.co_cellvars, *frame.f_code.co_varnames}
    lost = (around & set(dropped)) - local
    if lost:
        raise _refuse_lost(tracing, lost)
