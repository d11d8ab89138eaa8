"""What may be chosen about effects as functions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from counterveil.estimators.setting_checks import number, one_of, out_of_range, whole

BASES = ("legendre", "cosine", "spline")
_LARGEST_DEGREE = 8
_MOST_KNOTS = 20
_refusal = partial(out_of_range, "CV-P525", "effects as functions")


@dataclass(frozen=True, slots=True)
class CateSettings:
    """Settings of the methods "arms" and "interacted".

    Attributes:
        basis: functions of a number: "legendre" polynomials, "cosine" waves (whose slope is zero at the ends
            of the range: intervals do not cover that), or cubic "spline" functions on evenly spaced knots.
        degree: total degree of the functions; None follows public numbers. Splines have `knots` instead.
        products: whether functions of several covariates are multiplied; None does where there are at most three.
        knots: inner knots of the splines of one covariate.
        passes: looks at the residuals after the first fit; None follows the method.
        least_propensity: propensities are kept this far from 0 and 1 ("interacted" alone).
    """

    basis: str = "legendre"
    degree: int | None = None
    products: bool | None = None
    knots: int = 3
    passes: int | None = None
    least_propensity: float = 0.05

    def __post_init__(self) -> None:
        if not one_of(self.basis, *BASES):
            raise _refusal("basis", f"one of {BASES}", self.basis)
        if self.degree is not None and not whole(self.degree, 1, _LARGEST_DEGREE):
            raise _refusal("degree", f"None or a whole number from 1 to {_LARGEST_DEGREE}", self.degree)
        if self.products is not None and not isinstance(self.products, bool):
            raise _refusal("products", "True, False or None", self.products)
        if not whole(self.knots, 1, _MOST_KNOTS):
            raise _refusal("knots", f"a whole number from 1 to {_MOST_KNOTS}", self.knots)
        if self.passes is not None and not whole(self.passes, 1, 8):
            raise _refusal("passes", "None or a whole number from 1 to 8", self.passes)
        if not number(self.least_propensity, 0.01, 0.4):
            raise _refusal("least_propensity", "a number from 0.01 to 0.4", self.least_propensity)


@dataclass(frozen=True, slots=True)
class RandomFeatureSettings:
    """Settings of the method "random_features".

    Attributes:
        pairs: pairs of cosine and sine features.
        bandwidth: of the Gaussian kernel that they stand for, where covariates are scaled to [0, 1].
        penalty: of the squared weights beside the mean squared error; None follows public numbers.
        seed: of the public frequencies.
        least_propensity: propensities are kept this far from 0 and 1.
    """

    pairs: int = 30
    bandwidth: float = 1.0
    penalty: float | None = None
    seed: int = 0
    least_propensity: float = 0.05

    def __post_init__(self) -> None:
        if not whole(self.pairs, 1, 64):
            raise _refusal("pairs", "a whole number from 1 to 64", self.pairs)
        if not number(self.bandwidth, 1e-3, 1e3):
            raise _refusal("bandwidth", "a number from 0.001 to 1000", self.bandwidth)
        if self.penalty is not None and not number(self.penalty, 1e-6, 1e3):
            raise _refusal("penalty", "None or a number from 1e-6 to 1000", self.penalty)
        if not whole(self.seed, 0, 2**31):
            raise _refusal("seed", "a whole number that is not negative", self.seed)
        if not number(self.least_propensity, 0.01, 0.4):
            raise _refusal("least_propensity", "a number from 0.01 to 0.4", self.least_propensity)
