"""What a run, a piece of it, or a call whose guard fails has done to tensors and random states is undone."""
