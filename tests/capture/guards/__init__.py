"""Tests of guards: what is noted, what implies what, what is looked at."""
