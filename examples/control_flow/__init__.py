"""Programs whose way depends on their values, written as plain PyTorch.

Each module has `make`, which gives the callable, and `inputs`, which gives argument tuples that go several ways.
"""
