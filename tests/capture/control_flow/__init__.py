"""Tests of branches and loops in captures."""
