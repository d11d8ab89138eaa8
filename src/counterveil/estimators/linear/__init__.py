"""One linear form of the outcomes with public weights: difference in means, matching, weighting, means of arms."""
