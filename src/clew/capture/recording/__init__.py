"""Recording: which value of the running program belongs to which node of the growing graph.

Arguments come in, calls become nodes, the result and the changed state go out. Frameworks add what their calls are.
"""
