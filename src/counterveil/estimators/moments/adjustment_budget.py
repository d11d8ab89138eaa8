"""Is covariate adjustment affordable, and how is its budget split? Answered from public numbers alone.

Nothing here reads a row or a released number. The estimator whose error is planned is the doubly robust
(orthogonal) score with linear nuisance models, fitted to a noisy Gram matrix (`rows.moments.joint_gram`,
`nuisance_models`).

Notation
--------
n, p      rows; features without the constant. m = p + 1.
strength  n * epsilon for l2-ball noise, n * mu for Gaussian noise.
a, b      squared lengths of treatment and outcome in a row of the Gram matrix, relative to the row itself.

Covariates are standardised and outcomes have variance one. Constants under "assumed" only steer the choice;
neither privacy nor coverage depends on them. They were set on the tuning seeds of
`experiments/record_effect/RESULTS.md`.

In: a `Design` (rows, features, epsilon and delta, noise, arms). Out: whether noise of the Gram matrix, by its
operator norm beside covariates of variance one, is small enough (`MAX_GRAM_NOISE`), and the parts of the
budget of each release. Privacy needs no proof here, since nothing is released: any split of the budget is
private.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import sqrt

import numpy as np

from counterveil.numerics.arrays import Floats
from counterveil.privacy import Budget
from counterveil.session import Plan

# Adjustment is affordable while the operator norm of the Gram matrix's noise is at most this.
MAX_GRAM_NOISE = {"gaussian": 1.6, "pure": 1.2}
MAX_GRAM_ENTRIES = 10_000  # of the largest Gram matrix that is released
SCORE_CLIPS = ((0.75, 2.5), (0.25, 3.0), (0.0, 4.0))  # (relative noise above which, clip in SDs of the score)

# Assumed about the data while budgets are compared.
ROW_LENGTH = 1.5  # squared length of a standardised row, per feature
BETA_SQUARED = 0.5  # squared length of the outcome coefficients
GAMMA_SQUARED = 0.08  # squared length of the treatment coefficients
TREATMENT_RESIDUAL_VARIANCE = 0.18
TREATMENT_BOUND = 0.55  # largest |t - share|
OUTCOME_BOUND = 2.2  # clip of the outcome, in its SDs
OUTCOME_RESIDUAL_VARIANCES = (0.01, 0.1, 0.5)  # averaged over
GRAM_NOISE_AFTER_DENOISING = 0.1  # share of the squared noise that denoising leaves
RESIDUAL_CLIP = 3.5  # clip of residuals, in their SDs


@dataclass(frozen=True, slots=True)
class Design:
    """The public numbers that the split depends on.

    Attributes
    ----------
    rows : int
        Number of rows n.
    features : int
        Number of features p, the constant not counted.
    budget : Budget
        Epsilon and delta of the whole request.
    mechanism : str
        "gaussian"; any other name means l2-ball noise for vectors.
    arms : int
        Number of treatment arms.
    """

    rows: int
    features: int
    budget: Budget
    mechanism: str
    arms: int = 2

    @property
    def pure(self) -> bool:
        """Whether vectors get l2-ball noise (pure DP) instead of Gaussian noise."""
        return self.mechanism != "gaussian"

    @property
    def drawn(self) -> str:
        """Name of the noise of vectors: "ball" or "gaussian"."""
        return "ball" if self.pure else self.mechanism

    @property
    def fits(self) -> bool:
        """Whether the second moments of all arms fit into one release."""
        return self.arms * (self.features + 3) * (self.features + 4) // 4 <= MAX_GRAM_ENTRIES

    @property
    def strength(self) -> float:
        """n * epsilon (pure) or n * mu (Gaussian) of the whole budget."""
        return self.rows * _whole_budget(self.budget, self.mechanism)

    def sd(self, share: Floats | float, coordinates: int, sensitivity: Floats | float) -> Floats:
        """Return the noise SD of one coordinate of a released mean vector.

        Parameters
        ----------
        share : float or array
            Part of the budget that the vector gets.
        coordinates : int
            Length of the vector (l2-ball noise grows with it).
        sensitivity : float or array
            l2 sensitivity of the *sum*; the mean's is this over n.
        """
        if self.pure:
            return np.asarray(sensitivity * sqrt(coordinates + 1) / (share * self.strength))
        return np.asarray(sensitivity / (np.sqrt(share) * self.strength))

    def gram_noise(self, share: Floats | float, squared_max_norm: Floats | float) -> Floats:
        """Return the noise SD of an off-diagonal entry of the Gram matrix of (1, z, t, y)."""
        columns = self.features + 3
        return self.sd(share, columns * (columns + 1) // 2, squared_max_norm)


@lru_cache(maxsize=256)
def _whole_budget(budget: Budget, mechanism: str) -> float:
    """Return the epsilon (pure) or the mu (Gaussian) that one release of everything may spend."""
    return float(Plan.split(budget, {"all": Fraction(1)}, mechanism).amount("all"))


@dataclass(frozen=True, slots=True)
class ChainSplit:
    """Shares of the budget by release, and the scales of treatment and outcome in the Gram matrix.

    Attributes
    ----------
    shares : tuple of (name, Fraction)
        In the order of release: centre, norms, gram, residual 1, ..., score. They add up to one.
    treatment, outcome : float
        a and b: squared lengths relative to that of a row of features.
    """

    shares: tuple[tuple[str, Fraction], ...]
    treatment: float
    outcome: float

    @property
    def residual_passes(self) -> int:
        """How often moments of residuals are released."""
        return sum(name.startswith("residual") for name, _ in self.shares)


def clip_sds(relative_noise: Floats | float) -> Floats:
    """Return where scores are clipped, in SDs of the score.

    `relative_noise` is the privacy noise of the mean of a score clipped at one SD, over the sampling error.
    Clipping lower adds a little bias and removes much noise where there is much.
    """
    (high, low_clip), (middle, middle_clip), (_, wide_clip) = SCORE_CLIPS
    noise = np.asarray(relative_noise)
    return np.asarray(np.where(noise > high, low_clip, np.where(noise > middle, middle_clip, wide_clip)))


def gram_noise_norm(design: Design) -> float:
    """Return about the operator norm of the Gram matrix's noise, 2 sd sqrt(m).

    The Gram matrix gets half of a pure budget, three quarters of a Gaussian one.
    """
    squared_norm = 1.0 + 1.2 / ROW_LENGTH if design.pure else 1.8
    share = 0.5 if design.pure else 0.75
    sd = float(design.gram_noise(share, squared_norm * (1 + ROW_LENGTH * design.features)))
    return 2 * sqrt(design.features + 1) * sd


def affordable(design: Design) -> bool:
    """Return whether the budget supports adjustment for all features."""
    return design.fits and gram_noise_norm(design) <= MAX_GRAM_NOISE["pure" if design.pure else "gaussian"]


def fewest_rows(design: Design, rule: Callable[[Design], bool] = affordable) -> int:
    """Return the smallest n for which `rule` holds, by doubling and bisection; `rule` must be monotone in n."""

    def holds(rows: int) -> bool:
        return rule(replace(design, rows=rows))

    low, high = 1, 2
    while not holds(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle
    return high


@dataclass(frozen=True, slots=True)
class _Candidate:
    objective: float
    split: ChainSplit


@lru_cache(maxsize=256)
def split(design: Design) -> ChainSplit:
    """Return the split of least expected log mean squared error, by a grid search over shares and scales."""
    setup = {
        "centre": Fraction(12 if design.pure else 6, 100),
        "norms": Fraction(5 if design.pure else 2, 100),
    }
    candidates = [_best_split(design, setup, passes) for passes in (0, 1, 2)]
    return min(candidates, key=lambda candidate: candidate.objective).split


def _best_split(design: Design, setup: dict[str, Fraction], passes: int) -> _Candidate:
    """Return the best split with this number of residual passes."""
    remaining = 1 - sum(setup.values(), Fraction(0))
    score, residual = (
        grid.ravel() for grid in np.meshgrid(np.arange(5, 75, 5), np.arange(0, 65, 5), indexing="ij")
    )
    # The Gram matrix keeps at least 15%, and residual passes are paid for exactly if there are some.
    admissible = (score + residual <= 100 * float(remaining) - 15) & ((residual == 0) == (passes == 0))
    score = score[admissible]
    residual = residual[admissible]
    scales = np.geomspace(0.05, 1.5, 8)
    objective = _log_mse(
        design,
        score_share=score[:, None, None] / 100,
        residual_share=residual[:, None, None] / 100,
        gram_share=float(remaining) - score[:, None, None] / 100 - residual[:, None, None] / 100,
        passes=passes,
        a=scales[:, None],
        b=scales,
    )
    best = np.unravel_index(int(np.argmin(objective)), objective.shape)
    score_share = Fraction(int(score[best[0]]), 100)
    residual_share = Fraction(int(residual[best[0]]), 100)
    shares = setup | {"gram": remaining - score_share - residual_share}
    shares |= {f"residual {k}": residual_share / passes for k in range(1, passes + 1)}
    shares["score"] = score_share
    chosen = ChainSplit(tuple(shares.items()), float(scales[best[1]]), float(scales[best[2]]))
    return _Candidate(float(objective[best]), chosen)


def _log_mse(
    design: Design,
    *,
    score_share: Floats,
    residual_share: Floats,
    gram_share: Floats,
    passes: int,
    a: Floats,
    b: Floats,
) -> Floats:
    """Return the log of the expected squared error, summed over the assumed residual variances.

    With e_y the squared error of the outcome coefficients after all passes, V the variance of the score,

        MSE = s_t^2 e_y + s_score^2 + V / n + bias^2,

    where s_t is the noise of the treatment's cross moments and s_score that of the released score. A pass
    over residuals replaces e_y by e_y q / (e_y + q) with q = m s_r^2, which is ridge shrinkage towards the
    last fit.
    """
    m = design.features + 1
    squared_row = 1 + ROW_LENGTH * design.features
    s_gram = design.gram_noise(gram_share, squared_row * (1 + a + b))
    s_t = s_gram * TREATMENT_BOUND / np.sqrt(a * squared_row)
    s_y = s_gram * OUTCOME_BOUND / np.sqrt(b * squared_row)
    total: Floats = np.zeros(())
    for residual_variance in OUTCOME_RESIDUAL_VARIANCES:
        e_y = BETA_SQUARED * m * s_y**2 / (BETA_SQUARED + m * s_y**2)
        bias = GRAM_NOISE_AFTER_DENOISING * m * s_gram**2 * sqrt(BETA_SQUARED * GAMMA_SQUARED)
        for _ in range(passes):
            clip = RESIDUAL_CLIP * np.sqrt(residual_variance + e_y)
            s_r = design.sd(residual_share / passes, m + 1, 2 * sqrt(squared_row)) * clip
            e_y = e_y * m * s_r**2 / (e_y + m * s_r**2)
            bias = bias * np.minimum(1.0, 0.1 + 0.7 * s_gram * sqrt(GRAM_NOISE_AFTER_DENOISING * m))
        variance = TREATMENT_RESIDUAL_VARIANCE * (residual_variance + e_y)
        unit = design.sd(0.8 * score_share, 3, 2.1)
        s_score = clip_sds(unit * sqrt(design.rows)) * np.sqrt(variance) * unit
        total = total + np.log(s_t**2 * e_y + s_score**2 + variance / design.rows + bias**2)
    return total
