"""The intermediate representation: nodes, graphs, guards and types as data that knows no framework, printer or pass."""
