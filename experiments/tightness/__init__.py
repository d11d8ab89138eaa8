"""How close each mechanism's largest privacy loss comes to its claim, and what noise that buys."""
