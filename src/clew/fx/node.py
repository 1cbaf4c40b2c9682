"""torch.fx.node: nodes, and walks through their arguments."""

from typing import TypeVar

from clew.frameworks.torch.guest import TorchGuest
from clew.fx.torch_source import definitions_beside
from clew.ir.arguments import BASE_TYPES, map_aggregate, map_arg
from clew.ir.effects import effectful as _side_effectful_functions
from clew.ir.effects import has_side_effect
from clew.ir.node import Node

__all__ = ["Node", "_side_effectful_functions", "has_side_effect", "map_aggregate", "map_arg"]

ArgumentT = TypeVar("ArgumentT")
BaseArgumentTypes = str | int | float | bool | complex
base_types = (*BASE_TYPES, *TorchGuest.constant_classes)

__getattr__ = definitions_beside(globals())
