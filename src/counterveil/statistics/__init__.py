"""Everything that touches rows: one folder for each way of touching them, with kernels, bounds and proofs together."""
