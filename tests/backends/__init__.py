"""Tests of back ends."""
