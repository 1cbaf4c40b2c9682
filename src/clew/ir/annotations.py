"""Type annotations as text and back: ``list[int]``, ``typing.Optional[torch.Tensor]``, ``int | None``.

An annotation comes in and its text goes out, in full names, if reading that text gives an equal annotation;
otherwise None, and the writer treats the annotation as an object that no name reaches. Reading calls
nothing but the subscription of types.
"""

from __future__ import annotations

import operator
import types
import typing
from typing import Any

from clew.errors import TextError
from clew.ir import lookup
from clew.ir.literals import Speller
from clew.ir.lookup import DOTTED
from clew.ir.reader import Reader


class _Unnamed(LookupError):
    """A part of an annotation that no name reaches."""


def annotation_text(annotation: Any) -> str | None:
    """The text of an annotation that reads back as an equal one; None if there is none."""
    try:
        text = _written(annotation)
        reader = AnnotationReader(text)
        found = reader.annotation()
    except (_Unnamed, TextError):
        return None
    return text if not reader.skip() and type(found) is type(annotation) and found == annotation else None


def _name(value: Any) -> str:
    name = lookup.name_for(value)
    if name is None:
        raise _Unnamed(repr(value))
    return name


def _type_name(kind: Any) -> str:
    name = _name(kind)
    return name.removeprefix("builtins.") if isinstance(kind, type) else name


_speller = Speller(_name, _name)


def _written(annotation: Any) -> str:
    if annotation is type(None):
        return "None"
    if annotation is ...:
        return "..."
    if isinstance(annotation, str):
        return repr(annotation)
    if isinstance(annotation, typing.ForwardRef):
        return repr(annotation.__forward_arg__)
    if isinstance(annotation, list):
        return f"[{_joined(annotation)}]"
    if isinstance(annotation, types.UnionType):
        return " | ".join(map(_written, annotation.__args__))
    name = getattr(annotation, "_name", None)
    if isinstance(name, str) and getattr(typing, name, None) is annotation:
        return f"typing.{name}"  # typing's special forms, such as typing.List, know their own names
    origin = typing.get_origin(annotation)
    return _type_name(annotation) if origin is None else _subscripted(annotation, origin)


def _joined(annotations: Any) -> str:
    return ", ".join(map(_written, annotations))


def _subscripted(annotation: Any, origin: Any) -> str:
    arguments = typing.get_args(annotation)
    if origin is typing.Union:
        if len(arguments) == 2 and arguments[1] is type(None):
            return f"typing.Optional[{_written(arguments[0])}]"
        return f"typing.Union[{_joined(arguments)}]"
    if origin is typing.Literal:
        return f"typing.Literal[{', '.join(map(_speller.spell, arguments))}]"
    if origin is typing.Annotated:
        return f"typing.Annotated[{', '.join([_written(arguments[0]), *map(_speller.spell, arguments[1:])])}]"
    name = getattr(annotation, "_name", None)
    if isinstance(annotation, types.GenericAlias) or not isinstance(name, str) or not hasattr(typing, name):
        return f"{_type_name(origin)}[{_joined(arguments) or '()'}]"
    return f"typing.{name}[{_joined(arguments) or '()'}]"


def _may_subscript(kind: Any) -> bool:
    """True for what makes a type of other types when it is subscripted, and nothing else."""
    if isinstance(kind, type) and issubclass(kind, typing.Generic):
        return True
    module = getattr(kind, "__module__", None)
    return isinstance(module, str) and module.partition(".")[0] in lookup.OPEN_PACKAGES


class AnnotationReader(Reader):
    """Reads annotations, besides values."""

    def annotation(self) -> Any:
        """A Python type: names, subscripted ones, and unions with ``|``."""
        start = self.place
        found = self.single_annotation()
        while self.accept("|"):
            other = self.single_annotation()
            try:
                found = operator.or_(found, other)
            except TypeError as error:
                raise self.fault(f"these types form no union: {error}", start) from error
        return found

    def single_annotation(self) -> Any:
        first = self.skip()
        if first in ("'", '"'):
            return self.string()
        if first == ".":
            return self.ellipsis()
        if first == "[":
            return self.annotations("[", "]")
        if first == "(":
            return tuple(self.annotations("(", ")"))
        if first == "@":
            return self.subscripted(self.given()[0])
        match = self.take(DOTTED, "a type")
        if match[0] == "None":
            return type(None)
        name = match[0] if "." in match[0] else f"builtins.{match[0]}"
        return self.subscripted(self.find(name, match.start()))

    def annotations(self, opening: str, closing: str) -> list[Any]:
        self.expect(opening)
        found = []
        while not self.accept(closing):
            found.append(self.annotation())
            if not self.accept(","):
                self.expect(closing, f"',' or '{closing}'")
                break
        return found

    def subscripted(self, base: Any) -> Any:
        start = self.place
        if not self.text.startswith("[", self.place):
            return base
        if not _may_subscript(base):
            raise self.fault("this type takes no types in brackets", start)
        if base is typing.Literal:
            items = self.list_value()
        elif base is typing.Annotated:
            self.expect("[")
            items = [self.annotation()]
            items += self.items("]")[0] if self.accept(",") else []
        else:
            items = self.annotations("[", "]")
        try:
            return base[items[0] if len(items) == 1 else tuple(items)]
        except TypeError as error:
            raise self.fault(f"these types do not fit together: {error}", start) from error
