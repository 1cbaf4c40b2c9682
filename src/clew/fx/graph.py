"""torch.fx.graph: graphs, and the code that is made of them."""

from collections.abc import Callable

from clew.codegen.python import CodeGen, PythonCode
from clew.codegen.statements import inplace_methods, magic_methods, reflectable_magic_methods
from clew.fx.torch_source import definitions_beside
from clew.ir.arguments import map_arg
from clew.ir.graph import Graph

__all__ = ["CodeGen", "Graph", "PythonCode", "inplace_methods", "magic_methods", "map_arg", "reflectable_magic_methods"]

TransformCodeFunc = Callable[[list[str]], list[str]]

__getattr__ = definitions_beside(globals())
