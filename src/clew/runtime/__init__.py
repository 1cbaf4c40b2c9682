"""What users call: graphs as functions and modules, lazy captures, packages on disk; ``fast`` is the fast path."""
