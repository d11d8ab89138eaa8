"""How far sites differ beyond their errors: Cochran's Q, I^2, and the variance between sites.

    Q(tau^2) = sum_j (e_j - e)^2 / (v_j + tau^2),    e the average of the e_j with weights 1 / (v_j + tau^2)

Site j estimates its own effect, drawn around a mean with variance tau^2, by e_j with an error of variance v_j
(both released; units of the estimate and their square). Without differences Q(0) is about chi-squared with J
- 1 degrees of freedom. tau^2 is Paule and Mandel's (1982): with it Q(tau^2) is its expectation, J - 1. Its
interval is that of the Q profile: all tau^2 whose Q lies between two chi-squared quantiles (Viechtbauer 2007;
`inference/random_effects.proof.md`). I^2 is the part of Q beyond its degrees of freedom.

Everything is made from released numbers: privacy does not depend on it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import sqrt

import numpy as np
from scipy.special import chdtrc, chdtri

from counterveil.numerics.arrays import Floats

# tau^2 is found to this part of the largest variance.
_PRECISION = 1e-12
_MOST_STEPS = 200


@dataclass(frozen=True, slots=True)
class Heterogeneity:
    """How far sites differ beyond chance, as in metafor.

    Attributes
    ----------
    q : float
        Cochran's Q.
    df : int
        Its degrees of freedom: sites less 1.
    p_value : float
        P-value of no differences between sites.
    i_squared : float
        Part of Q beyond chance, in [0, 1].
    tau_squared : float
        Variance of the sites' effects, in squared units of `scale` (Paule and Mandel 1982).
    scale : str
        What is compared between sites, such as "difference" or "log ratio".

    Notes
    -----
    Q is the sum of (b_i - b)^2 / v_i over sites, v_i being sampling and noise variance of estimate b_i and b
    their precision-weighted mean. I^2 = max(1 - df / Q, 0). tau^2 makes the sum of (b_i - b)^2 / (v_i +
    tau^2) its df.
    """

    q: float
    df: int
    p_value: float
    i_squared: float
    tau_squared: float
    scale: str = "difference"

    @property
    def tau(self) -> float:
        """Standard deviation of the sites' effects, in units of `scale`."""
        return sqrt(self.tau_squared)

    def to_dict(self) -> dict[str, float | str]:
        """Return the figures and the scale by name.

        Returns
        -------
        dict
            The attributes.
        """
        return asdict(self)


def heterogeneity(estimates: Floats, variances: Floats, scale: str = "difference") -> Heterogeneity:
    """Return how much estimates (J,) differ beyond what their variances (J,) explain."""
    q = _excess(0.0, estimates, variances)
    df = len(estimates) - 1
    beyond = max(0.0, 1 - df / q) if q > 0 else 0.0
    between = paule_mandel(estimates, variances)
    return Heterogeneity(
        q=q, df=df, p_value=float(chdtrc(df, q)), i_squared=beyond, tau_squared=between, scale=scale
    )


def paule_mandel(estimates: Floats, variances: Floats) -> float:
    """Return the tau^2 at which the weighted sum of squares equals its degrees of freedom; 0 at least."""
    return _profile(estimates, variances, len(estimates) - 1)


def tau_squared_interval(estimates: Floats, variances: Floats, level: float) -> tuple[float, float]:
    """Return an interval for the variance between sites: values at which Q is not beyond its quantiles (Q profile).

    Exact for normal errors of these variances (Viechtbauer 2007); (0, 0) where sites differ less than chance allows.
    """
    df = len(estimates) - 1
    tail = (1 - level) / 2
    return tuple(_profile(estimates, variances, float(chdtri(df, p))) for p in (tail, 1 - tail))  # type: ignore[return-value]


def i_squared_of(tau_squared: float, variances: Floats) -> float:
    """Return the part of the variance of estimates that is between sites, for a typical variance within (Higgins)."""
    # Products of pairs, smallest first: the square of the sum less the squares would cancel.
    weights = np.sort(1 / variances)
    pairs = 2 * float(weights[1:] @ np.cumsum(weights)[:-1])
    typical = (len(variances) - 1) * weights.sum() / pairs
    return float(tau_squared / (tau_squared + typical))


def _profile(estimates: Floats, variances: Floats, aim: float) -> float:
    """Return the tau^2 at which the weighted sum of squares is `aim`; 0 at least."""
    if _excess(0.0, estimates, variances) <= aim:
        return 0.0
    # At this value every weight is at most 1/tau^2, so the sum of squares is below its aim.
    low = 0.0
    high = float(((estimates - estimates.mean()) ** 2).sum()) / aim
    for _ in range(_MOST_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if _excess(middle, estimates, variances) > aim else (low, middle)
        if high - low <= _PRECISION * (high + float(variances.max())):
            break
    return high


def _excess(tau_squared: float, estimates: Floats, variances: Floats) -> float:
    weights = 1 / (variances + tau_squared)
    centre = float(weights @ estimates / weights.sum())
    return float(weights @ (estimates - centre) ** 2)
