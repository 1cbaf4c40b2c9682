"""Calls of torch as nodes: the fast path, what is known of each function, and what calls do besides computing."""
