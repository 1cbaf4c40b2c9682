"""The namespaces of the target frameworks: NumPy's functions, and ours, as calls of the framework's own."""
