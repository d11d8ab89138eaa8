"""Coverage and widths of effects of groups, of values of policies and of targeting curves."""
