"""Translation: a graph of one framework's functions becomes a graph of another's.

A captured program and the name of a framework come in; out comes a program of that framework, or one list of all that
cannot be carried over. ``program.py`` is the way in. Each source has one table of rows (``rows/``): small functions
against an array namespace; each target has one namespace (``targets/``), whose calls become nodes.
"""
