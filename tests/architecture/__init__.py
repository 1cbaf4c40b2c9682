"""Checks of the shape of the code itself: who imports whom, how long things are, what is public."""
