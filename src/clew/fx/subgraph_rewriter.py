"""torch.fx.subgraph_rewriter: patterns replaced by others."""

from clew.fx.torch_source import definitions_beside
from clew.passes.replace import Match, ReplacedPatterns, replace_pattern, replace_pattern_with_filters

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]

__getattr__ = definitions_beside(globals())
