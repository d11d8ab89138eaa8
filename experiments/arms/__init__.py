"""Several arms of private records."""
