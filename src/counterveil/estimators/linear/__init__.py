"""Linear forms of private outcomes with public weights: difference in means, matching, weighting, arm means."""
