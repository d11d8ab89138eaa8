"""The league: every method on the same data at the same guarantee, beside the truth."""
