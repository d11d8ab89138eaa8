"""Any learner on disjoint folds of the rows: its effects are clipped and averaged."""
