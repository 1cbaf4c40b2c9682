"""A graph as Python source: ``layout`` plans a function, ``python`` writes it, ``statements`` writes single nodes."""
