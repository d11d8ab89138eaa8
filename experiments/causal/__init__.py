"""Whether 95 % intervals cover: every level and estimand, outcomes redrawn on fixed covariates and treatments."""
