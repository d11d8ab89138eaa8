"""Where outcomes lie within their declared range, bought where it is expected to shorten intervals.

Noise follows the width of the range. A part of the budget finds a shorter interval, outcomes are clamped to it, and
what that may hide is a part of the interval of the effect. Proof: `statistics/histogram.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt

import numpy as np

from counterveil.data import OUTCOME_STEPS, Backend, Study, Table
from counterveil.numerics.arrays import Integers
from counterveil.privacy.caveats import ClampedOutcomes, Fact
from counterveil.results.question import Question
from counterveil.session import Gate, Plan
from counterveil.statistics.histogram import COUNTS_L1, COUNTS_L2
from counterveil.statistics.linear.budget import NAMES, TYPICAL_SD, Sensitivities, effect_plan
from counterveil.statistics.outcome_place import ENDS, PLACE_WORDS, count_octaves

PLACE_PAGE = "statistics/histogram.proof.md"
# Parts of the budget that the place may take, the largest first.
_PARTS = [Fraction(1, part) for part in (4, 6, 10, 16, 25)]
# Most by which the search may lengthen an interval whose range is right, and least by which it must shorten one whose
# range is so many times too wide; squared lengths.
_MOST_COST, _LEAST_GAIN, _TOO_WIDE = 1.04, 1.21, 20
# A width that a search leaves, in standard deviations of outcomes.
_FOUND = 15
# Most noise of an octave's count, as a part of the smaller arm.
_MOST_NOISE = 1 / 50
# Outcomes beyond the innermost octave are seen where they exceed their noise so far; else nothing is clamped.
# A tail is there where it exceeds the second of these.
_SEEN, _SURE = 6.0, 2.5


@dataclass(frozen=True, slots=True)
class Interval:
    """A part of the declared range: its lower end in steps, how often the range is halved, and what clamping may hide.

    `lost` is in parts of the declared range.
    """

    low: int = 0
    halvings: int = 0
    lost: float = 0.0

    @property
    def part(self) -> Fraction:
        """Its width in parts of the declared range."""
        return Fraction(1, 1 << self.halvings)

    def clamped(self, outcome: Integers) -> Integers:
        """Return outcomes within the interval, in steps of which it has as many as the range."""
        return np.clip(outcome - self.low, 0, OUTCOME_STEPS >> self.halvings) << self.halvings

    def within(self, table: Table) -> Table:
        """Return the table with clamped outcomes, the interval being their range."""
        if not self.halvings:
            return table
        study = table.study.changed(outcome_range=self.ends(table.study))
        return replace(table, study=study, outcome=self.clamped(table.outcome), measures=())

    def ends(self, study: Study) -> tuple[Fraction, Fraction]:
        """Return both ends in units of the outcome."""
        lo, hi = study.outcome_range
        low = lo + (hi - lo) * Fraction(self.low, OUTCOME_STEPS)
        return low, low + (hi - lo) * self.part

    def hidden(self, study: Study) -> float:
        """Return the standard deviation of what clamping may hide, in units of the outcome."""
        lo, hi = study.outcome_range
        return self.lost * float(hi - lo)

    def details(self, study: Study) -> dict[str, float | str]:
        """Return what to say of it."""
        if not self.halvings:
            return {}
        low, high = map(float, self.ends(study))
        return {"outcomes_from": low, "outcomes_to": high, "se_clamping": self.hidden(study)}

    def said(self, study: Study) -> tuple[Fact, ...]:
        """Return what the interval of the effect does not cover because of it."""
        return (ClampedOutcomes(*map(float, self.ends(study))),) if self.halvings else ()


WHOLE_RANGE = Interval()


def place_part(
    study: Study,
    smaller: float,
    sensitivity: Sensitivities,
    squares: Fraction,
    share: Fraction,
    question: Question,
) -> Fraction:
    """Return the part of the budget that finds the place of outcomes, 0 where it does not pay; reads public numbers.

    `smaller` is the effective size of the smaller arm, `squares` the sum of squared coefficients times what is allowed
    for bias, `share` the variance's of what is left.
    Only where it is asked for: few outcomes that noise hides may lie far beyond what is found, and an interval that
    allowed for them would be longer than one without a search. Outcomes from 0 to 1 are not searched.
    """
    low, high = study.outcome_range
    if not getattr(question.settings, "find_range", False) or (low == 0 and high == 1) or not share:
        return Fraction(0)
    width = float(high - low)

    def expected(part: Fraction, sd: float, found: float) -> float:
        """Return the squared length for outcomes of an SD in ranges of a width, both in declared ranges."""
        noise = _noise(effect_plan(question, share, part), sensitivity)
        return (sd * width) ** 2 * float(squares) + found**2 * noise

    usual = float(TYPICAL_SD)
    small = usual / _TOO_WIDE
    without = expected(Fraction(0), usual, 1.0), expected(Fraction(0), small, 1.0)
    for part in _PARTS:
        plan = effect_plan(question, share, part)
        sure = _count_sd(plan) <= _MOST_NOISE * smaller
        cheap = expected(part, usual, 1.0) <= _MOST_COST * without[0]
        if sure and cheap and _LEAST_GAIN * expected(part, small, _FOUND * small) <= without[1]:
            return part
    return Fraction(0)


def _count_sd(plan: Plan) -> float:
    """Return the standard deviation of the noise of one octave's count."""
    amount = float(dict(plan.amounts)["spread"])
    return (float(COUNTS_L2) if plan.mechanism == "gaussian" else sqrt(2.0) * float(COUNTS_L1)) / amount


def _noise(plan: Plan, sensitivity: Sensitivities) -> float:
    """Return what noise adds to a squared length: that of the effect, and what that of the variance calls for."""
    own = plan.noise(NAMES[0], sensitivity.estimate).variance
    return own + sqrt(plan.noise(NAMES[1], sensitivity.variance).variance)


def searched(plan: Plan) -> tuple[tuple[str, str], ...]:
    """Return what to say of the releases that find the place, nothing where none was planned."""
    parts = plan.parts
    return tuple((words, f"{parts[n]:.3g} of the budget") for n, words in PLACE_WORDS.items() if n in parts)


def mechanisms(plan: Plan) -> tuple[str, ...]:
    """Return the noise of a plan: counts of a pure search have Laplace noise."""
    laplace = ("laplace",) if searched(plan) and plan.mechanism == "staircase" else ()
    return (plan.mechanism, *laplace)


def find_interval(
    gate: Gate, source: Backend, plan: Plan, sensitivity: Sensitivities, smaller: float
) -> Interval:
    """Return the interval of least expected error from two releases, the whole range if none was planned.

    What it clamps may all be of the `smaller` arm, and at the far end of its octave.
    """
    if not searched(plan):
        return WHOLE_RANGE
    centre, octaves = count_octaves(gate, source, pure=plan.mechanism != "gaussian")
    tails, sds = octaves.tails()
    if tails[1] < _SEEN * sds[1]:
        return WHOLE_RANGE
    shares = octaves.shares(False, _SURE)
    lo, hi = source.study.outcome_range
    noise, width = _noise(plan, sensitivity), float(hi - lo)
    found = [(noise, WHOLE_RANGE)]
    for place, reach in enumerate(ENDS):
        # Half the width of the interval is the reach; at an end of the range all of it is.
        halvings = len(ENDS) - 1 - place - (0 if octaves.at_end else 1)
        if halvings > 0:
            steps = OUTCOME_STEPS >> halvings
            low = min(max(centre - steps // 2, 0), OUTCOME_STEPS - steps)
            lost = source.rows / smaller * float(shares @ np.maximum(ENDS - reach, 0.0)) / 2
            found.append((noise / 4.0**halvings + (lost * width) ** 2, Interval(low, halvings, lost)))
    return min(found, key=lambda one: one[0])[1]
