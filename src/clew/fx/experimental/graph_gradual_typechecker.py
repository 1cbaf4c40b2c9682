"""torch.fx.experimental.graph_gradual_typechecker: its rules, also for operators that write in place."""

from clew.frameworks.torch.unseen_writes import PLAIN
from clew.fx.torch_source import define_beside

define_beside(globals())

for _rules in (globals()["_INFERENCE_RULES"], globals()["_REFINEMENT_RULES"], globals()["_RULES"]):
    _rules.update({in_place: _rules[plain] for in_place, plain in PLAIN.items() if plain in _rules})
