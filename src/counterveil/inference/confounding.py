"""How strong an omitted confounder would have to be to explain an effect: arithmetic on released numbers.

E-values are those of VanderWeele and Ding (2017): the least risk ratio that a confounder needs with treatment and
outcome. Bounds on bias are those of Cinelli and Hazlett (2020) for a linear regression and of Chernozhukov, Cinelli,
Newey, Sharma and Syrgkanis (2022) for averages of effects: with S^2 the residual variance of the outcome times the
mean squared weight of a person,

    |bias| <= S sqrt(R2_Y R2_T / (1 - R2_T)),

where R2_Y is the share of the outcome's residual variance that the confounder explains, and R2_T that of the
treatment's (of the weights' where effects are averaged by weights).
"""

from __future__ import annotations

from math import exp, inf, sqrt

# Chinn's (2000) factor from standardised differences to logarithms of odds ratios, halved because an odds ratio is
# about the square of a risk ratio (VanderWeele 2017): pi / sqrt(3) / 2.
_LOG_RATIO_OF_DIFFERENCE = 0.91


def e_value(ratio: float) -> float:
    """Return the least risk ratio of a confounder with treatment and outcome that explains a risk ratio away."""
    if ratio <= 0:
        return inf
    above = max(ratio, 1 / ratio)
    return above + sqrt(above * (above - 1))


def ratio_of_difference(difference: float, sd: float) -> float:
    """Return about which risk ratio a difference in means is, for outcomes of this standard deviation."""
    # Beyond this an E-value has no meaning left, and the exponential no double.
    return exp(max(-50.0, min(50.0, _LOG_RATIO_OF_DIFFERENCE * difference / sd)))


def nearest_to(ends: tuple[float, float], none: float) -> float:
    """Return the end of an interval that is nearest to no effect, which is returned where it is inside."""
    low, high = ends
    if low <= none <= high:
        return none
    return low if low > none else high


def bias_bound(scale: float, treatment_r2: float, outcome_r2: float) -> float:
    """Return the largest bias from a confounder that explains these shares; `scale` is S above."""
    return scale * sqrt(outcome_r2 * treatment_r2 / (1 - treatment_r2))


def outcome_r2_needed(bias: float, scale: float, treatment_r2: float) -> float:
    """Return the share of the outcome that makes such a bias possible; above 1 where none does."""
    if bias <= 0:
        return 0.0
    return (bias / scale) ** 2 * (1 - treatment_r2) / treatment_r2 if scale and treatment_r2 else inf


def robustness_value(bias: float, scale: float) -> float:
    """Return the share of both, treatment and outcome, from which on a confounder can cause such a bias."""
    if bias <= 0:
        return 0.0
    if not scale:
        return 1.0
    squared = (bias / scale) ** 2
    # The root of R2^2 / (1 - R2) = squared, in the form that loses no digits where it is large.
    return 2 * squared / (squared + sqrt(squared**2 + 4 * squared))


def as_strong_as(partial_r2: float, times: float) -> float:
    """Return the share of the treatment explained by a confounder `times` as strong as a covariate, at most 1.

    `partial_r2` is the covariate's own share of what the other covariates leave of the treatment. The confounder is
    independent of the covariates, whose share is k f^2 with f^2 = R2 / (1 - R2) (Cinelli and Hazlett 2020, eq. 4.4).
    """
    return min(1.0, times * partial_r2 / (1 - partial_r2)) if partial_r2 < 1 else 1.0
