"""Tests of capture: what a symbolic trace must see, and what it must leave alone."""
