"""torch.fx.annotate: a type for the value of a node."""

from clew.capture.symbolic.proxy import annotate
from clew.fx.torch_source import definitions_beside

__all__ = ["annotate"]

__getattr__ = definitions_beside(globals())
