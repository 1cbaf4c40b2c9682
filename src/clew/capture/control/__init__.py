"""Control flow of Python in captures: questions that a program asks of its data become branches and loops of the graph.

``paths`` records each way that a program can go, ``rewrite`` turns loops and branches of a function into calls that
record their bodies, ``regions`` makes these calls. What neither can follow is guarded.
"""
