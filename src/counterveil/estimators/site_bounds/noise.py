"""Figures of a noise, what a budget pays for, and where a number with a known error may lie.

The scale of a noise follows from a sensitivity s (in units of the number) and a part of the budget, both of
which a site names: s / epsilon for pure noise (Laplace, staircase), s / mu for normal noise, mu being the
parameter of Gaussian differential privacy that (epsilon, delta) allows. Parts of one budget keep

    sum of the noises' epsilons <= epsilon,    or    sum of the squares of their mus <= mu^2,

by composition of releases. A number lies no farther from the truth than sampling and noise reach once in 10^9
studies (`NEVER`): a half width of so many standard deviations of the largest sampling variance, plus the same
quantile of the noise, plus the bias it may have. In come public numbers and a site's figures, out come bounds
as values in units of the outcome; `LEAST_PART` is the smallest part of a budget that a release may have
(1/50).

`NEVER` makes an honest answer fail once in a thousand million studies, and `SLACK` covers the rounding of
released variances and mus. Both judge released figures: privacy does not depend on them. The composition is
that of `accounting/filters.proof.md`, the noise of `mechanisms/laplace.proof.md` and
`mechanisms/gaussian.proof.md`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Any

from counterveil.bounded_reading import Fields, UnreadableError
from counterveil.estimators.site_bounds.site_question import ReleasedDifference, SiteQuestion
from counterveil.inference.convolution import half_width
from counterveil.inference.noise_distribution import NoiseDistribution
from counterveil.inference.uncertainty import Uncertainty
from counterveil.numerics.arrays import Ends
from counterveil.results.effect import noise_from_dict, noise_to_dict
from counterveil.results.site_bounds import Bound, Breach, Equal, OneOf, Within

# An honest answer lies beyond its reach once in a thousand million studies.
NEVER = 1e-9
# Released sampling variances are rounded to a grid, and a mu is a fraction below the exact one.
SLACK = 1 + 1e-9
# No release has a smaller part of the budget, unless the question says so.
LEAST_PART = Fraction(1, 50)
# What part of the budget the noise of each mechanism names.
_AMOUNTS = {
    **dict.fromkeys(("staircase", "laplace", "summed_laplace"), "epsilon"),
    **dict.fromkeys(("gaussian", "summed_gaussian"), "mu"),
}
# Numbers of a document beyond these are no sensitivity, and no epsilon or mu.
_LARGEST_SENSITIVITY = 1e60
_LARGEST_AMOUNT = 1e9


def is_plain(noise: Any) -> bool:
    """Return whether the scale of a noise follows from a sensitivity that nothing private is in."""
    return noise_to_dict(noise).get("mechanism") in _AMOUNTS


@dataclass(frozen=True, slots=True)
class PlainNoise:
    """What a site says of a noise whose scale follows from a sensitivity.

    `amount` is its part of the budget: epsilon, or mu where the noise is normal.
    """

    mechanism: str
    sensitivity: Fraction
    amount: Fraction

    @classmethod
    def of(cls, noise: Any) -> PlainNoise:
        """Return the figures of a noise, or raise `UnreadableError` where it is of another kind, or none."""
        if not is_plain(noise):
            raise UnreadableError("a noise whose scale does not follow from a sensitivity")
        facts = noise_to_dict(noise)
        fields = Fields("mechanism", facts)
        mechanism = str(facts["mechanism"])
        amount = fields.rational(_AMOUNTS[mechanism], 0, _LARGEST_AMOUNT)
        return cls(mechanism, fields.rational("sensitivity", 0, _LARGEST_SENSITIVITY), amount)

    @property
    def normal(self) -> bool:
        """Whether the noise is normal, so that squares of its amounts add up."""
        return _AMOUNTS[self.mechanism] == "mu"

    @property
    def paid(self) -> Fraction:
        """The amount in the unit in which parts of a budget add up: epsilon, or mu squared."""
        return self.amount**2 if self.normal else self.amount


def noise_like(noise: Any, *, sensitivity: Fraction, paid: Fraction) -> Any:
    """Return noise of the same mechanism for another sensitivity and a part of epsilon, or of mu squared."""
    plain = PlainNoise.of(noise)
    amount = Fraction(sqrt(paid)) if plain.normal else paid
    facts = {"sensitivity": str(sensitivity), _AMOUNTS[plain.mechanism]: str(amount)}
    return noise_from_dict({**noise_to_dict(noise), **facts})


@dataclass(frozen=True, slots=True)
class BudgetParts:
    """Parts of one budget that noises of one mechanism name; `budget` is epsilon, or mu squared."""

    noises: tuple[PlainNoise, ...]
    budget: Fraction

    @classmethod
    def of(cls, question: SiteQuestion, noises: Sequence[Any]) -> BudgetParts:
        """Return the parts that noises have of the budget that was asked for."""
        plain = tuple(map(PlainNoise.of, noises))
        budget = (question.mu or Fraction(0)) ** 2 if plain[0].normal else question.budget.epsilon
        return cls(plain, budget)

    @property
    def remaining(self) -> Fraction:
        """What the noises leave of the budget; less than nothing where they have more than all of it."""
        return self.budget - sum(noise.paid for noise in self.noises)

    def bounds(self, question: SiteQuestion, spare: Fraction = Fraction(0)) -> Iterator[Bound]:
        """Yield that one mechanism draws all, that `spare` of the budget is left, and that no part is too small."""
        mechanisms = {noise.mechanism for noise in self.noises}
        yield Equal("number of mechanisms", len(mechanisms), 1)
        yield OneOf("mechanism of a noise", self.noises[0].mechanism, question.mechanisms)
        slack = self.budget * Fraction(SLACK - 1) if self.noises[0].normal else Fraction(0)
        yield Within("remaining budget", self.remaining, low=spare * self.budget - slack)
        least = Fraction(0) if question.divides_budget else LEAST_PART
        smallest = min(noise.paid for noise in self.noises)
        yield Within("smallest part of the budget", smallest, low=least * (self.budget - slack))


def no_more_than_asked(question: SiteQuestion, error: Uncertainty) -> Iterator[Bound]:
    """Yield that no noise of an error is for a larger epsilon or mu than was asked for."""
    for noise in (error.noise, error.variance_noise):
        facts = noise_to_dict(noise)
        fields = Fields("mechanism", facts)
        if "epsilon" in facts:
            epsilon = fields.rational("epsilon", 0, _LARGEST_AMOUNT)
            yield Within("epsilon of a noise", epsilon, high=question.budget.epsilon)
        if "mu" in facts:
            # Without a delta there is no normal noise.
            yield OneOf("whether a delta pays for normal noise", question.mu is not None, (True,))
            mu = fields.rational("mu", 0, _LARGEST_AMOUNT)
            yield Within("mu of a noise", mu, high=(question.mu or Fraction(0)) * SLACK)


def no_further_error(error: Uncertainty) -> Iterator[Bound]:
    """Yield that an error is sampling and noise alone: nothing for bias, models or clipping."""
    yield Equal("variance of other errors", error.extra, 0)
    yield Equal("bias", error.bias, 0)
    yield Equal("variance of clipped scores", error.ball_variance, 0)


def variance_released_or_largest(error: Uncertainty) -> Iterator[Bound]:
    """Yield that a variance is the largest where none was released."""
    if error.variance_noise is None:
        yield Equal("variance that was not released", error.variance, error.variance_cap)


def farthest(noise: NoiseDistribution | None) -> float:
    """Return how far a noise goes, once in a thousand million studies apart."""
    return 0.0 if noise is None else half_width(0.0, noise, NEVER)


def reach_of(error: Uncertainty, *, width: float, extra: float, bias: float = 0.0) -> float:
    """Return how far from the truth a number lies, once in a thousand million studies apart.

    Its sampling variance is no larger than the squared `width` of what it can be, whatever a site claims; `extra` is
    the variance of other errors.
    """
    sampling = sqrt(min(error.variance_cap, width**2) + extra)
    return bias + half_width(sampling, None, NEVER) + farthest(error.noise)


def within_reach(figure: str, value: float, ends: Ends, margin: float) -> Within:
    """Return that a number is no farther from where it can be than its error goes."""
    return Within(
        figure=figure, value=value, low=ends[0] - margin, high=ends[1] + margin, breach=Breach.REACH
    )


def effect_in_reach(question: SiteQuestion, released: ReleasedDifference) -> Within:
    """Return that an effect lies where declared outcomes and its noise can put it."""
    error = released.error
    width = float(question.width)
    sampling = sqrt(min(error.variance_cap, width**2) + error.extra_at(NEVER))
    largest = width + error.bias + half_width(sampling, None, NEVER) + farthest(error.noise)
    return Within("estimate", abs(released.estimate), high=largest, breach=Breach.REACH)


def variance_in_reach(error: Uncertainty, *, above: float = 0.0, below: float = 0.0) -> Within:
    """Return that a sampling variance lies where outcomes and its noise can put it.

    It may lie `above` beyond, on either side, and be another `below` under zero.
    """
    beyond = farthest(error.variance_noise) + 1e-9 * error.variance_cap + above
    return Within("sampling variance", error.variance, -beyond - below, error.variance_cap + beyond)


def squared_noise(estimate: float, error: Uncertainty, rows: float) -> float:
    """Return how far noise moves a variance that is a second moment less the square of a noisy estimate."""
    noise = farthest(error.noise)
    return (2 * abs(estimate) + noise) * noise / rows
