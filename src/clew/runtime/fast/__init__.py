"""The fast path of a captured call: bound code, the call in one step, and what tells whether either still holds."""
