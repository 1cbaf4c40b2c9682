"""Modules of ``torch.nn`` in captures: entered or kept as calls, their modes, state and hooks."""
