"""The command line ``clew``, also ``python -m clew``: what people ask of a program without writing a script.

A target (``package.module:name``, ``file.py:name`` or a bundle) and inputs (``x=f32[2,3]``) come in; text or JSON goes
out, and an exit code that scripts can rely on. Importing this package imports no framework.
"""
