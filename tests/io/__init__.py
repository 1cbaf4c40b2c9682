"""Programs of other tools, taken in and given back."""
