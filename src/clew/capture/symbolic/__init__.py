"""Symbolic capture, without an example: proxies run through the program and record it.

``proxy`` records, ``inputs`` makes the placeholders, ``wrap`` keeps functions as calls, ``tracer`` directs and patches,
and lets frameworks watch what happens besides proxies.
"""
