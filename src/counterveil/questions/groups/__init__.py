"""Effects of public groups."""
