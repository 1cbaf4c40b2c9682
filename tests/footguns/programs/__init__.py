"""The programs, one file for each kind; each file registers its own when it is imported."""
