"""Tables 2 and 3 of the PP-IPW paper, beside the form of this library."""
