"""Coverage of effect measures and of several outcomes."""
