"""The orthogonal private effect on simulated studies: errors, coverage and widths."""
