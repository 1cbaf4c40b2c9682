"""The sections of the benchmark, by the names under which the command takes them.

A section is a file with a function ``tasks(quick)``: what there is to measure, each task with a title and a function
that gives its figures. Tasks are small enough for a progress bar to move.
"""
