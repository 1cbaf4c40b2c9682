"""Captured programs as files that are safe to open: ``clew.save`` and ``clew.load``.

A bundle is a zip of the graph's text with its guards, a manifest, weights as safetensors, and generated Python for
people to read. Loading runs nothing of the file: no pickle, no eval; functions are found by name in the packages that
the caller allows (``ir/permissions.py``). Whatever is wrong with a file is a ``BundleError``.
"""
