"""Functions of torch that take functions: vmap, grad, checkpoint, cond, autograd functions; their bodies are graphs."""
