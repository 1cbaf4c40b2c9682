"""What Clew knows about PyTorch: effects, names, spellings, types and signatures of its functions and values."""
