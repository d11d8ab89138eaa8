"""Effects of public groups, values of public rules, and targeting curves."""
