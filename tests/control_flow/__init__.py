"""Python control flow in captured programs: every construct, what it becomes, and that it is right on every input."""
