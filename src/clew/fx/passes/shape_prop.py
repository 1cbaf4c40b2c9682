"""torch.fx.passes.shape_prop: shapes and dtypes, found by running a graph."""

from clew.fx.torch_source import definitions_beside
from clew.passes.shape_prop import ShapeProp, TensorMetadata

__all__ = ["ShapeProp", "TensorMetadata"]

__getattr__ = definitions_beside(globals())
