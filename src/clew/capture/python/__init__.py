"""Plain Python around a program: clocks, random numbers, the environment, files, processes, caches, imported names.

What these give or do is no call of a framework, and no argument of the program: unheard, it would be frozen in a graph.
A framework's run makes a ``Listener``, installs the replacements, and says for which time the listener hears.
"""
