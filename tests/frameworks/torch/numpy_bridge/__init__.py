"""Tests of NumPy inside torch programs."""
