"""Every model of `examples/models` through torch.fx and through clew: the same graphs, the same answers."""
