"""The user's code as it runs: its instructions, calls and ``try`` blocks, and what it does with a value."""
