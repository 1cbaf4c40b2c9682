"""What a program relied on: noted while it runs, reduced to what counts, and lifted out of the graph as data."""
