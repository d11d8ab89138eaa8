"""Coverage and length of intervals of policy values and targeting curves on outcomes of several shapes."""
