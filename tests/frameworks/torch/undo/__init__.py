"""Tests of what is undone when a guard fails."""
