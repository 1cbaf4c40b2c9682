"""The ledger of hard programs: what a capture must get right, or refuse with an error of Clew, but never get wrong."""
