"""What the outcome-private estimators reach: errors by epsilon, and the coverage of their intervals."""
