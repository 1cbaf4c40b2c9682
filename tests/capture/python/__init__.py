"""What captures make of plain Python: clocks, random numbers, the environment, files, printed text."""
