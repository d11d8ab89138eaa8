"""How far one unit can move a statistic: one statistic a file, its proof beside it."""
