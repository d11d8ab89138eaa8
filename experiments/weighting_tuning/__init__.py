"""How the settings of the balancing weights were chosen, and what they reach on other data."""
