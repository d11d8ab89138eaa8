"""What private inverse weighting will do to a study, before anything is spent: bias, noise and errors of sign.

The bounds of the PP-IPW paper (Lemma 3, Theorems 4, 5 and 8 to 11), corrected where they are misprinted and
made for scores that are clipped. Everything here reads public numbers, except `noise_bias`, which is for
simulations. With z the noise of the model's weights, normal with standard deviation sigma, a row's noisy logit is
v + x.z, normal around its fitted logit v with standard deviation at most sigma |x|.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import erf, exp, expm1, isfinite, log, pi, sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from counterveil.errors import Refusal
from counterveil.numerics.gaussian_profile import mu_of

ESTIMANDS = ("ATE", "ATT", "ATC")


@dataclass(frozen=True, slots=True)
class IPWDesign:
    """A planned study: Gaussian noise at (epsilon, delta), scores clipped to [clip, 1 - clip].

    `fit_rows` rows are for the propensity model and `rows` are weighted. `outcome_bound` is the largest size of
    an outcome (half the range, where outcomes are centred in it) and `reach` of a row of features, the constant
    included.
    """

    fit_rows: int
    rows: int
    epsilon: float
    delta: float
    penalty: float
    clip: float
    outcome_bound: float
    reach: float = 1.0

    def __post_init__(self) -> None:
        numbers = (self.fit_rows, self.rows, self.epsilon, self.penalty, self.outcome_bound, self.reach)
        if not all(isfinite(number) and number > 0 for number in numbers):
            raise _refusal("numbers above 0", self)
        if not 0 < self.delta < 1 or not 0 < self.clip < 0.5:
            raise _refusal("0 < delta < 1 and 0 < clip < 1/2", self)

    @property
    def mu(self) -> float:
        """The Gaussian privacy parameter of each part of the rows."""
        return float(mu_of(Fraction(self.epsilon), Fraction(self.delta)))

    @property
    def weight_sigma(self) -> float:
        """Standard deviation of each weight's noise, 2 reach / (fit_rows penalty mu)."""
        return 2 * self.reach / (self.fit_rows * self.penalty * self.mu)

    def largest_weight(self, estimand: str = "ATE") -> float:
        """Return the largest weight that a row can have once scores are clipped."""
        if estimand not in ESTIMANDS:
            raise _refusal(f"estimand one of {ESTIMANDS}", estimand)
        return 1 / self.clip if estimand == "ATE" else (1 - self.clip) / self.clip

    def support(self, estimand: str = "ATE") -> float:
        """Return eta, the largest size of the weighted mean: every row is in one arm."""
        return self.outcome_bound * self.largest_weight(estimand)

    def release_sigma(self, estimand: str = "ATE") -> float:
        """Return the standard deviation of the noise on the weighted mean."""
        return 2 * self.support(estimand) / (self.rows * self.mu)

    def bias_bound(self) -> float:
        """Return the largest bias that noise in the weights can cause: the clipped form of Lemma 3.

        It is the same for all estimands: their weights are clipped odds, plus one for the ATE.
        """
        return self.outcome_bound * self._largest_shift()

    def unclipped_bias_bound(self) -> float:
        """Return the same without clipping, where noise enters exponentially: Lemma 3 at its worst."""
        growth = self.weight_sigma**2 * self.reach**2 / 2
        return self.outcome_bound * exp(min(self._logit_bound + growth, 700.0)) * -expm1(-growth)

    def sign_error_bound(self, effect: float, estimand: str = "ATE") -> float:
        """Return a bound on P(the weighted mean has the wrong sign) before its own noise (Theorems 4, 8, 9).

        `effect` is the size of what the same clipped weighting gives without noise.
        """
        return sign_error(self._mean(effect), self.support(estimand))

    def joint_sign_error_bound(self, effect: float, estimand: str = "ATE") -> float:
        """Return a bound on P(wrong sign before and after its own noise) (Theorems 5, 10, 11)."""
        mean, eta = self._mean(effect), self.support(estimand)
        return joint_sign_error(mean, eta, self.release_sigma(estimand))

    def released_sign_error_bound(self, effect: float, estimand: str = "ATE") -> float:
        """Return a bound on P(the released effect has the wrong sign)."""
        mean, eta = self._mean(effect), self.support(estimand)
        return released_sign_error(mean, eta, self.release_sigma(estimand))

    def _mean(self, effect: float) -> float:
        """Return the least mean that the weighted sum can have, given its value without noise."""
        return max(abs(effect) - self.bias_bound(), 0.0)

    @property
    def _logit_bound(self) -> float:
        """The largest fitted logit: the objective at the minimum is at most its value ln 2 at zero."""
        return self.reach * sqrt(2 * log(2) / self.penalty)

    def _largest_shift(self) -> float:
        """Return the largest change of an expected weight, for logits of any centre and this spread.

        The weight falls in the logit with slope -e^-v between the clips, at most L = (1 - clip)/clip in size. Along
        the spread s, E h(v + s Z) changes at the rate s E h''(v + s Z), where h'' is e^-v inside, a mass -L at the
        one clip and +1/L at the other, and a mass has density at most 1/(s sqrt(2 pi)). So the shift lies between
        -L s/sqrt(2 pi) and L s^2/2 + s/(L sqrt(2 pi)).
        """
        steepest, spread = (1 - self.clip) / self.clip, self.weight_sigma * self.reach
        down = steepest * spread / sqrt(2 * pi)
        up = steepest * spread**2 / 2 + spread / (steepest * sqrt(2 * pi))
        return min(max(down, up), steepest - 1 / steepest)


def noise_bias(
    outcome: ArrayLike,
    treated: ArrayLike,
    logits: ArrayLike,
    lengths: ArrayLike,
    sigma: float,
    estimand: str = "ATE",
) -> float:
    """Return the bias of the unclipped weighted mean under normal noise in the weights (Lemma 3), exact.

    `logits` are the fitted ones and `lengths` those of the rows of features. The published exponent has the factor
    (-1)^t, which is a misprint: the expectation of e^(-x.z) and of e^(x.z) is e^(sigma^2 |x|^2 / 2) for both arms.
    """
    y, t = np.asarray(outcome, np.float64), np.asarray(treated, np.bool_)
    v, size = np.asarray(logits, np.float64), np.asarray(lengths, np.float64)
    alpha = np.where(t, y * np.exp(-v), -y * np.exp(v))
    counted = np.ones(len(y), np.bool_) if estimand == "ATE" else (~t if estimand == "ATT" else t)
    return float(np.mean(np.where(counted, alpha, 0.0) * np.expm1(sigma**2 * size**2 / 2)))


def sign_error(mean: float, support: float) -> float:
    """Return a bound on P(V <= 0) for any V in [-support, support] with this mean (Theorem 4's quantity).

    Theorem 4 prints exp(-2 mean^2 / support^2), from Hoeffding's inequality with half the range that it needs. The
    figure holds all the same: support - V is not negative, so Markov's inequality gives 1 - mean/support, which is
    never larger. That smaller figure is returned; it cannot be improved, as V may be 0 or support.
    """
    return min(max(1 - mean / support, 0.0), 1.0)


def published_sign_error(mean: float, support: float) -> float:
    """Return the bound that Theorems 4, 8 and 9 print, exp(-2 mean^2 / support^2)."""
    return exp(-2 * (mean / support) ** 2)


def joint_sign_error(mean: float, support: float, sigma: float) -> float:
    """Return a bound on P(V <= 0 and V + noise <= 0), noise normal with this sigma (Theorem 5's quantity).

    Theorem 5 has |V| on its right side, which is random; its largest value, the support, stands here.
    """
    before = sign_error(mean, support) * (1 + erf(support / (sigma * sqrt(2)))) / 2
    return min(before, released_sign_error(mean, support, sigma))


def released_sign_error(mean: float, support: float, sigma: float) -> float:
    """Return a bound on P(V + noise <= 0) for any V in [-support, support] with this mean.

    P(V + noise <= 0) = E g(V), g(x) = Phi(-x/sigma), which is concave below 0 and convex above: its least concave
    majorant at the mean is reached by V with two values, one of them the upper end.
    """
    # Beyond ten sigma on either side g is 1 or 0 to 23 digits, and the bound at the window's ends holds there.
    window = min(support, 10 * sigma)
    lower = np.linspace(-window, min(mean, window, support * (1 - 1e-9)), 4001)
    share = np.minimum((support - mean) / (support - lower), 1.0)
    mixed = share * ndtr(-lower / sigma) + (1 - share) * ndtr(-support / sigma)
    beyond = (support - mean) / (support + window) + float(ndtr(-10.0))
    # Between two points of the grid g changes by at most its steepest slope times the step.
    slack = float(lower[1] - lower[0]) / (sigma * sqrt(2 * pi))
    return float(min(max(mixed.max() + slack, beyond, float(ndtr(-mean / sigma))), 1.0))


_refusal = Refusal(
    "CV-P422",
    "this is not a design of private inverse weighting",
    expected="{expected}",
    got="{got!r}",
    fix="pass public numbers of the study: rows, budget with delta above 0, penalty, clip, bounds",
)
