"""The tests of Clew; the folders mirror those of `src/clew`."""
