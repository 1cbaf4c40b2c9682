"""Sizes in torch programs as expressions of the sizes that came in: rules, and what follows from sizes."""
