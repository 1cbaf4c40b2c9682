"""torch.fx.passes.utils.matcher_utils: where a pattern occurs in a graph."""

from clew.fx.torch_source import definitions_beside
from clew.passes.match import InternalMatch, SubgraphMatcher

__all__ = ["InternalMatch", "SubgraphMatcher"]

__getattr__ = definitions_beside(globals())
