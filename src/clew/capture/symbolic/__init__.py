"""Symbolic capture, without an example: proxies run through the program and record it.

``proxy`` records, ``tracer`` directs and patches, ``inputs`` makes the placeholders, ``wrap`` keeps functions as calls,
``real_values`` lets frameworks watch what happens besides proxies.
"""
