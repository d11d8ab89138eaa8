"""What may be chosen about the orthogonal private effect."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import sqrt
from typing import Any

import numpy as np

from counterveil.errors import ParameterError, StudyError, shown
from counterveil.numerics.public_choices import LEAST_SHARE
from counterveil.privacy import Estimand
from counterveil.results.result import Result
from counterveil.results.settings import number, one_of, out_of_range

TARGETS = ("overlap", "ate", "att", "atc")
_TARGETS_OF = {Estimand.ATE: ("overlap", "ate"), Estimand.ATT: ("att",), Estimand.ATC: ("atc",)}
_LARGEST_KAPPA = 1.0
# Correlations may be rounded, so that the least eigenvalue of a true matrix comes out a little below zero.
_ROUNDING = 1e-6

_refusal = partial(out_of_range, "CV-P400", "doubly_robust")


@dataclass(frozen=True, slots=True)
class DoublyRobustSettings:
    """Settings of `method="doubly_robust"` with `protects="record"`.

    Attributes:
        target: whose effect is averaged. None follows the estimand: "overlap" for ATE (everyone, weighted
            by e(1-e), so that those who could have been in either arm count most; it equals the ATE where
            the effect does not vary), "att" for ATT, "atc" for ATC. "ate" weights back to everyone.
        degree: 1 for the covariates themselves, 2 with squares and products, "auto" for 2 where the public
            numbers afford it.
        covariance: correlations of the features, if they are public knowledge; no budget is then spent
            on them. One row and column for each feature of degree 1, in the order of the study: numbers and
            two-label covariates have one, others one for each label but the last.
        means, sds: public means and standard deviations of the same features, in the units of the study
            (flags are 0 and 1). Both or neither, and with `covariance`; they save most where n is small.
        unaffordable: what to do where the public numbers say that adjustment is not affordable:
            "refuse" (an error, nothing spent) or "contrast" (the unadjusted contrast, which needs `kappa`).
        kappa: a bound on confounding, yours to declare: |difference in means - effect| is at most
            kappa sd(outcome) / (0.75 sd(treatment)). An unadjusted answer covers only if it holds.
        least_propensity: propensities are kept this far from 0 and 1 where a target weights by them.
    """

    target: str | None = None
    degree: int | str = 1
    covariance: tuple[tuple[float, ...], ...] | None = None
    means: tuple[float, ...] | None = None
    sds: tuple[float, ...] | None = None
    unaffordable: str = "refuse"
    kappa: float | None = None
    least_propensity: float = 0.1

    def __post_init__(self) -> None:
        if not one_of(self.target, None, *TARGETS):
            raise _refusal("target", f"None or one of {TARGETS}", self.target)
        if not one_of(self.degree, 1, 2, "auto"):
            raise _refusal("degree", "1, 2 or 'auto'", self.degree)
        if not one_of(self.unaffordable, "refuse", "contrast"):
            raise _refusal("unaffordable", "'refuse' or 'contrast'", self.unaffordable)
        if self.kappa is not None and not (number(self.kappa) and 0 < self.kappa <= _LARGEST_KAPPA):
            raise _refusal("kappa", "None or a number above 0, at most 1", self.kappa)
        if self.unaffordable == "contrast" and self.kappa is None:
            raise _refusal("kappa", "a declared bound, with unaffordable='contrast'", self.kappa)
        if not number(self.least_propensity, 0.01, 0.4):
            raise _refusal("least_propensity", "a number from 0.01 to 0.4", self.least_propensity)
        if self.covariance is not None:
            object.__setattr__(self, "covariance", _correlations(self.covariance))
            if self.degree != 1:
                raise _refusal("degree", "1 where the covariance is given", self.degree)
        self._check_location()

    def _check_location(self) -> None:
        given = [self.means is not None, self.sds is not None]
        if any(given) and (not all(given) or self.covariance is None):
            raise _refusal("means and sds", "both together, with covariance, or neither", given)
        for name in ("means", "sds"):
            value = getattr(self, name)
            if value is None:
                continue
            numbers = tuple(value) if isinstance(value, list | tuple | np.ndarray) else ()
            fits = self.covariance is not None and len(numbers) == len(self.covariance)
            if not fits or not all(number(float(one)) and (name == "means" or one > 0) for one in numbers):
                raise _refusal(name, "one number a feature, standard deviations above 0", value)
            object.__setattr__(self, name, tuple(float(one) for one in numbers))

    def target_of(self, estimand: Estimand) -> str:
        """Return whose effect is averaged, or refuse a target that is not the estimand's."""
        allowed = _TARGETS_OF[estimand]
        if self.target is None:
            return allowed[0]
        if self.target not in allowed:
            raise ParameterError(
                "CV-P401",
                "the target and the estimand disagree",
                expected=f"target={' or '.join(map(repr, allowed))} with estimand={estimand.value!r}",
                got=f"target={shown(self.target)}",
                fix="leave target out, or ask for the estimand that it belongs to",
            )
        return self.target


def _correlations(value: Any) -> tuple[tuple[float, ...], ...]:
    """Return the matrix as tuples of floats, or refuse what is no correlation matrix."""
    try:
        matrix = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        matrix = np.zeros(0)
    square = matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1] and matrix.size > 0
    if (
        not square
        or not np.isfinite(matrix).all()
        or not np.allclose(matrix, matrix.T, atol=_ROUNDING)
        or not np.allclose(np.diag(matrix), 1.0, atol=_ROUNDING)
        or float(np.linalg.eigvalsh(matrix)[0]) < -_ROUNDING
    ):
        raise ParameterError(
            "CV-P402",
            "the covariance is not a matrix of correlations",
            expected="a square symmetric matrix with ones on its diagonal and no negative eigenvalue",
            got=f"shape {matrix.shape}",
            fix="pass correlations of the standardised features, from public knowledge and not from these data",
        )
    return tuple(tuple(float(entry) for entry in row) for row in matrix)


# A declared bound on confounding: what an interval that adjusts for little or nothing is widened by.


# Confounding is bounded by kappa sd(y) / (this times sd(t)).
LEFT_OF_TREATMENT = 0.75
LARGEST_KAPPA = 1.0


def checked_kappa(kappa: object) -> None:
    """Raise CV-S082 unless kappa is None or a number that can bound confounding."""
    if kappa is None:
        return
    if not (number(kappa, 0, LARGEST_KAPPA) and kappa):
        raise StudyError(
            "CV-S082",
            "the declared bound on confounding is out of range",
            expected=f"kappa=None, or a number above 0, at most {LARGEST_KAPPA:g}",
            got=f"kappa={shown(kappa)}",
            fix="declare how far confounding can move the comparison, or leave kappa out",
        )


def inner_share(share: float) -> float:
    """Return a share treated, away from 0 and 1."""
    return min(max(share, float(LEAST_SHARE)), 1 - float(LEAST_SHARE))


def bounded(plain: Result, kappa: float, spread: float, share: float, condition: str) -> Result:
    """Return a comparison with kappa sd(y) / (0.75 sd(t)) added at both ends of its interval.

    `spread` stands for sd(y) and `share` for the share treated; both come from released numbers, so that what
    is added costs nothing.
    """
    bound = kappa * spread / (LEFT_OF_TREATMENT * sqrt(share * (1 - share)))
    details: dict[str, float | str] = {"adjusted": False, "kappa": kappa, "confounding_bound": bound}
    return replace(
        plain,
        uncertainty=replace(plain.uncertainty, bias=bound),
        not_covered=(
            f"CONFOUNDING beyond the declared kappa = {kappa:g}",
            *(text for text in plain.not_covered if not text.startswith("CONFOUNDING")),
        ),
        details=details | plain.details,
        interval_of=None,
        condition=condition,
    )
