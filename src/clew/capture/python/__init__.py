"""Plain Python around a program: clocks, random numbers, environment, files, processes, caches, imported names.

What these give or do is no call of a framework and no argument: unheard, it would be frozen in the graph. A run makes a
``Listener``, installs the replacements, and says for which time the listener hears.
"""
