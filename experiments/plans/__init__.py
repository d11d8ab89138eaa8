"""How far planned widths are from actual ones."""
