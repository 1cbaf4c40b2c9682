"""torch.fx.operator_schemas: signatures of torch's functions."""

from clew.frameworks.torch.signatures import (
    ArgsKwargsPair,
    check_for_mutable_operation,
    create_type_hint,
    get_signature_for_torch_op,
    normalize_function,
    normalize_module,
    type_matches,
)
from clew.fx.torch_source import definitions_beside

__all__ = [
    "ArgsKwargsPair",
    "check_for_mutable_operation",
    "create_type_hint",
    "get_signature_for_torch_op",
    "normalize_function",
    "normalize_module",
    "type_matches",
]

__getattr__ = definitions_beside(globals())
