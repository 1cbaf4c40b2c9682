"""The rows of each source framework: what its functions are in terms of an array namespace."""
