"""Recording a run on an example: which value of the running program belongs to which node of the growing graph.

Arguments come in (``inputs``), calls become nodes (``recorder``), the result and changed state go out (``outputs``).
``run`` is the template of one run; frameworks add what their calls and arrays are.
"""
