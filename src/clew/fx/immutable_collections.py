"""torch.fx.immutable_collections: lists and dicts that do not change."""

from clew.fx.torch_source import definitions_beside
from clew.ir.arguments import immutable_dict, immutable_list

__all__ = ["immutable_dict", "immutable_list"]

__getattr__ = definitions_beside(globals())
