"""The user's code as it runs: its instructions, the calls and ``try`` blocks in it, what it does with a value."""
