"""Other methods behind one protocol; for comparison alone, never called by a question."""
