"""Pure array maths that knows nothing of privacy."""
