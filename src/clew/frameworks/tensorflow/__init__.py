"""What Clew knows about TensorFlow: how its graphs become readable calls, and its types, names and effects."""
