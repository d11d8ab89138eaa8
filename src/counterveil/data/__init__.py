"""Studies and tables: roles, public bounds, fixed-point values."""
