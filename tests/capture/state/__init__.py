"""Tests of state that programs read and change."""
