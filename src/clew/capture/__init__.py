"""From a callable to a graph: the program runs, and what it does is recorded.

``symbolic`` runs it on proxies, without an example. ``recording`` runs it on an example, with ``bytecode`` (where the
program stands), ``python`` (clocks, files and the like), ``state`` (what it can reach and change), ``guards`` (what it
relied on) and ``control_flow`` (branches and loops on data). Frameworks say what their calls and arrays are.
"""
