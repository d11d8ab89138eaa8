"""Values of treatment rules and targeting curves."""
