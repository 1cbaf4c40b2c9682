"""Captures of NumPy programs."""
