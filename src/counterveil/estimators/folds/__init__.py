"""Any learner on disjoint folds: effects and functions, clipped and averaged."""
