"""What Clew knows about NumPy: effects, names, spellings and types of its functions and values, and their capture."""
