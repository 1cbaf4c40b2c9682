"""Tests that libraries which wrap a framework leave no trace in a graph."""
