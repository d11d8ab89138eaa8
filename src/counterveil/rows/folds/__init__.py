"""Effects that learners estimate in disjoint folds of private rows, clipped and averaged."""
