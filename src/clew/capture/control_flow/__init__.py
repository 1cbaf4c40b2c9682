"""Control flow of Python in captures: questions that a program asks of its data become branches and loops of the graph.

The program runs once for each way that it can go (``explore``, ``paths``). Functions that ask are rewritten, so that
their loops and branches can be recorded as bodies (``rewrite``, ``regions``). Recordings become one graph
(``recordings``).
"""
