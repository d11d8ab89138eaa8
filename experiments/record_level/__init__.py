"""What the record-private estimators reach: errors by epsilon, over seeded draws of their own release code."""
