"""Tools that judge and describe captures: ``verify`` runs one beside its original, ``explain`` reports what it holds.

They change nothing: arguments, modules, variables and random states are afterwards as they were before.
"""
