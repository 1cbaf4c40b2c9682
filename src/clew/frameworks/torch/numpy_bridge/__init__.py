"""NumPy inside of torch programs: arrays that share memory with tensors, and packages that use NumPy."""
