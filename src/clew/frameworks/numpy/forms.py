"""Which ufuncs do the work of which of Python's operators: ``array + x`` reaches a stand-in as ``numpy.add``."""

from __future__ import annotations

import operator

from clew.capture.example.operators import Form

FORMS = {
    "add": Form(operator.add), "subtract": Form(operator.sub), "multiply": Form(operator.mul),
    "divide": Form(operator.truediv), "true_divide": Form(operator.truediv), "floor_divide": Form(operator.floordiv),
    "remainder": Form(operator.mod), "power": Form(operator.pow), "matmul": Form(operator.matmul),
    "left_shift": Form(operator.lshift), "right_shift": Form(operator.rshift), "bitwise_and": Form(operator.and_),
    "bitwise_or": Form(operator.or_), "bitwise_xor": Form(operator.xor), "less": Form(operator.lt),
    "less_equal": Form(operator.le), "greater": Form(operator.gt), "greater_equal": Form(operator.ge),
    "equal": Form(operator.eq), "not_equal": Form(operator.ne),
}  # fmt: skip
"""The operator of each ufunc that is one, by name."""
