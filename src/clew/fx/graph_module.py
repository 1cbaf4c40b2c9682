"""torch.fx.graph_module: graphs as modules of torch."""

from clew.fx.torch_source import definitions_beside
from clew.runtime.module import GraphModule

__all__ = ["GraphModule"]

__getattr__ = definitions_beside(globals())
