"""Coverage of intervals where people come in clusters."""
