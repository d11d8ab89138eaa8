"""The noise of one draw for a difference in means beside that of one draw an arm."""
