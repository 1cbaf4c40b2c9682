"""Tests of what is read from the bytecode of the program's frames."""
