"""What Clew knows about JAX: how its jaxprs become readable calls, and what its functions and values are."""
