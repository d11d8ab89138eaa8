"""The laboratory of Counterveil: attacks on its releases, papers run again, and rivals."""
