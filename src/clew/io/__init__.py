"""Exchange with the graphs of others: torch.fx, torch.export, TorchScript, jaxprs and TensorFlow's graphs."""
