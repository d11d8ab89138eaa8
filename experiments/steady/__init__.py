"""How steady the widths of intervals are from draw to draw, on designs that are drawn at random."""
