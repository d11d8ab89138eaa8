"""How a smooth stratified release spends its budget, chosen from public numbers only."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product

import numpy as np

from counterveil.errors import ParameterError, shown
from counterveil.inference import tail_point
from counterveil.privacy import Budget, Estimand, exact
from counterveil.session import Kind, Plan, SmoothNoise
from counterveil.settings.outcome_level import SMOOTH_MECHANISMS
from counterveil.statistics.strata.smooth_sensitivity import smooth_weight
from counterveil.statistics.strata.variance_sensitivity import StratumCounts, smooth_variance_change

# A bound of G that is this many times what equal strata have at least is too loose to be useful.
_LOOSE = 2.0
_FOR_SCALE = [Fraction(k, 20) for k in (1, 2, 4, 6)]
_SMOOTHNESS = [Fraction(1, k) for k in (4, 6, 10, 20, 40)]
# A steeper bound would hardly be lower: at this rate one replacement counts for a seventh.
_STEEPEST = Fraction(2)
# Parts of the budget for the variance and, where asked for, for people in strata that lack an arm.
_FOR_VARIANCE = Fraction(3, 20)
_FOR_UNMATCHED = Fraction(3, 20)
_FOR_SHARE = Fraction(1, 10)
# The bound of G against the squared weight, for strata in balance: 6 against 2 squared.
VARIANCE_PER_WEIGHT = Fraction(3, 2)


@dataclass(frozen=True, slots=True)
class SmoothDesign:
    """The split of the budget and the rates of the smooth bounds.

    `variance` is the noise of G, None where pooled squares are released instead.
    """

    shares: tuple[tuple[str, Fraction], ...]
    effect: SmoothNoise
    variance: SmoothNoise | None

    @property
    def scale_sensitivity(self) -> Fraction:
        """How far the logarithm of the released scale can move."""
        own = self.effect.smoothness
        return own if self.variance is None else max(own, self.variance.smoothness / 2)

    def kinds(self) -> dict[str, Kind]:
        """Return what the releases are planned as."""
        found = {"effect": self.effect.kind, "scale": Kind.CELLS}
        if self.variance is not None:
            found["variance"] = self.variance.kind
        if "unmatched" in dict(self.shares):
            found["unmatched"] = Kind.SMOOTH
        return found


@dataclass(frozen=True, slots=True)
class PublicNumbers:
    """What the design may look at."""

    rows: int
    strata: int
    budget: Budget
    estimand: Estimand
    mechanism: str
    unmatched: bool
    smoothness: Fraction | None = None


def check_smooth_budget(budget: Budget, mechanism: str) -> None:
    """Raise CV-P363 where the noise and delta are incompatible."""
    if (mechanism == "laplace") == budget.pure:
        raise ParameterError(
            "CV-P363",
            "this noise and this delta do not go together",
            expected="delta > 0 with noise='laplace'; delta=0 with noise='lomax' or 'student'",
            got=f"noise={shown(mechanism)}, {budget}",
            fix="pass a delta such as 1e-6 for Laplace noise, or leave delta out",
        )


@lru_cache(maxsize=64)
def smooth_design(numbers: PublicNumbers) -> SmoothDesign:
    """Return the design with the narrowest interval for equal strata with half of everyone treated."""
    reference = _reference(numbers)
    fixed = _fixed_shares(numbers)
    left = 1 - sum(fixed.values(), Fraction(0))
    best: tuple[float, SmoothDesign] | None = None
    for part, rate in product(_FOR_SCALE, _SMOOTHNESS if numbers.smoothness is None else [Fraction(0)]):
        shares = {"effect": left * (1 - part), "scale": left * part} | fixed
        amount = numbers.budget.epsilon * shares["effect"]
        smoothness = numbers.smoothness or min(amount * rate, _STEEPEST)
        design = SmoothDesign(tuple(shares.items()), SmoothNoise(numbers.mechanism, smoothness), None)
        try:
            width = _half_width(numbers, design, reference)
        except ParameterError:
            continue  # this rate allows no noise
        if best is None or width < best[0]:
            best = width, design
    if best is None:
        raise _no_noise_possible(numbers)
    return _with_variance(numbers, best[1], reference)


def _fixed_shares(numbers: PublicNumbers) -> dict[str, Fraction]:
    shares = {"variance": _FOR_VARIANCE}
    if numbers.unmatched:
        shares["unmatched"] = _FOR_UNMATCHED
    if numbers.estimand is not Estimand.ATE:
        shares["share"] = _FOR_SHARE
    return shares


def _reference(numbers: PublicNumbers) -> StratumCounts:
    """Return equal strata in balance, as many as public numbers allow."""
    arm = max(1, numbers.rows // (2 * numbers.strata))
    strata = max(1, numbers.rows // (2 * arm))
    counts = np.array([arm], dtype=np.int64)
    found = StratumCounts.of(counts, counts, 1)
    return StratumCounts(found.treated, found.control, np.array([strata]), 2 * arm * strata)


def _half_width(numbers: PublicNumbers, design: SmoothDesign, reference: StratumCounts) -> float:
    """Return a number proportional to the 95 % half-width of an interval for the noise alone."""
    plan = Plan.split(numbers.budget, dict(design.shares), "laplace", design.kinds())
    noise = plan.smooth_noise("effect", design.effect)
    weight = smooth_weight(reference, design.effect.smoothness, numbers.estimand.value)
    log_scale = float(design.scale_sensitivity / plan.amount("scale", Kind.CELLS))
    return float(weight) * tail_point(noise.distribution(Fraction(1)), log_scale, 0.05)


def _with_variance(numbers: PublicNumbers, design: SmoothDesign, reference: StratumCounts) -> SmoothDesign:
    """Return the design with a smooth release of G, where its bound is not too loose for that."""
    amount = numbers.budget.epsilon * dict(design.shares)["variance"]
    smoothness = min(amount / 6, 2 * design.effect.smoothness, _STEEPEST)
    weight = smooth_weight(reference, design.effect.smoothness, numbers.estimand.value)
    if smooth_variance_change(reference, smoothness) > _LOOSE * VARIANCE_PER_WEIGHT * weight**2:
        return design
    # Student-t and Lomax are pure; where the effect takes the whole delta, the variance's noise is Lomax.
    mechanism = "lomax" if numbers.mechanism == SMOOTH_MECHANISMS[2] else numbers.mechanism
    return SmoothDesign(design.shares, design.effect, SmoothNoise(mechanism, smoothness))


def _no_noise_possible(numbers: PublicNumbers) -> ParameterError:
    return ParameterError(
        "CV-P364",
        "no smoothness leaves any epsilon for the noise at this budget",
        expected="an epsilon (and for Laplace noise a delta) large enough for the smooth bound",
        got=f"{numbers.budget}, smoothness={numbers.smoothness}",
        fix='leave smoothness out, or use sensitivity="bounded"',
    )


def given_smoothness(value: object) -> Fraction | None:
    """Return the smoothness of the settings as a rational, None where it is to be chosen."""
    return None if value is None else exact(value, "smoothness")  # type: ignore[arg-type]
