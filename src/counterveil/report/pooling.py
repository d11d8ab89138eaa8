"""How sites are weighted and how they differ, in words."""

from __future__ import annotations

from counterveil.inference.heterogeneity import Heterogeneity
from counterveil.numerics.arrays import Ends
from counterveil.report.text import probability, rounded
from counterveil.settings import WeightLimits

# Ways of pooling measures of both arms' means. All but the last average the means, with weights that are public.
METHODS = {
    "mvagg": "means of both arms, pooled by size: the subset of sites of least variance",
    "all": "means of both arms, pooled by size: all sites",
    "largest": "means of both arms of the largest site alone",
    "random_effects": "random effects: equal weights, Student's t over sites; ratios by their logarithms",
}
METHOD_TEXTS = {
    "mvagg": "least-variance subset of sites, by size",
    "ivw": "all sites, by inverse variance",
    "all": "all sites, by size",
    "largest": "the largest site alone",
    "random_effects": "random effects: equal weights, Student's t over sites",
}
# What the average is of; for random effects the sites are a sample of all there could be.
AVERAGE_OF_SITES = "the average of the sites' effects with the weights shown, whether or not the sites differ"
SITES_LIKE_THESE = "sites like these, which may differ; wide for a few sites"
MEAN_OF_SITES = f"the mean effect of {SITES_LIKE_THESE}"


def held_words(limits: WeightLimits) -> str:
    """Return what was done because sites are not trusted with their own weight."""
    own = ", or its share of the rows that sites are known to have" if limits.own else ""
    return f"from sizes and noise, not from variances that sites report; at most {limits.max_weight:.0%} each{own}"


def differing_words(differ: Heterogeneity, tau: Ends, noun: str, error: float) -> str:
    """Return how far sites differ; what is compared is called `noun`, and `error` says how exactly it is known."""
    return (
        f"Q = {differ.q:.3g} on {differ.df} degrees of freedom, p {probability(differ.p_value)}; "
        f"I^2 = {differ.i_squared:.0%}; standard deviation of the sites' {noun}s (tau) "
        f"{rounded(differ.tau, error)} [{', '.join(rounded(end, error) for end in tau)}]"
    )


def one_more_words(noun: str, ends: Ends, *, error: float, level: float) -> str:
    """Return where the number of one more site lies; it is called `noun`, and `error` says how exactly it is known."""
    low, high = (rounded(end, error) for end in ends)
    return f"its {noun} lies in [{low}, {high}] ({level:.0%}, conservative)"
