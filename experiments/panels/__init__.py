"""Coverage of effects on changes, by period and of ratios, and one real study."""
