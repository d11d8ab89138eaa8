"""Seeded answers of the product, kept in a file and compared to the bit."""
