"""Control flow: questions that a program asks of its data become branches and loops of the graph.

The program runs once for each path (``explore``, ``paths``); the recordings become one graph (``recordings``). Those
functions that ask are rewritten so that loops and branches are recorded as bodies (``rewrite``, ``regions``).
"""
