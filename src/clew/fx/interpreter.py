"""torch.fx.interpreter: graphs run node by node, and made anew node by node."""

from clew.fx.torch_source import definitions_beside
from clew.ir.interpreter import Interpreter
from clew.passes.transformer import Transformer

__all__ = ["Interpreter", "Transformer"]

__getattr__ = definitions_beside(globals())
