"""Back ends: a captured program on an engine that compiles it.

A captured program and the name of a back end come in; out comes the same program, in whose graph runs of nodes are one
call each: a segment, which the back end compiles when it is first called, once for each kind of arguments. What a back
end cannot take stays a node of its own, an island of Python. ``compile.py`` is the way in, ``partition.py`` finds the
segments, ``registry.py`` the back ends. Always holds: guards, signature, state and undoing are those of any capture.
"""
