"""Where outcomes lie within their declared range, searched for where that is expected to shorten intervals.

Noise follows the width of the range. A part of the budget finds a shorter window, to which outcomes are clamped; what
the clamping may hide becomes a part of the error of the effect. From released octaves of the distance to the centre,

    expected squared error(h) = noise / 4^h + (rows / smaller arm * lost(h) / 2)^2,

for a window of the range halved h times, lost(h) being the mean by which outcomes are moved if all of an octave's lie
at its far end. The constants steer whether the search is made and what it takes; privacy does not depend on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

import numpy as np

from counterveil.data import OUTCOME_STEPS, Study
from counterveil.estimators.linear.budget_split import TYPICAL_SD, Sensitivities, effect_plan
from counterveil.estimators.outcome_place import ENDS, PLACE_WORDS, count_octaves
from counterveil.privacy.caveats import Caveat, ClampedOutcomes, Fact, OutcomesAtEnds
from counterveil.results.question import Question
from counterveil.rows.counts import COUNTS_L1, COUNTS_L2
from counterveil.rows.linear.weighted_outcomes import NAMES
from counterveil.rows.outcome_histograms import OutcomeHistograms
from counterveil.rows.outcome_window import WHOLE_RANGE, OutcomeWindow
from counterveil.rows.public import PublicRows
from counterveil.session import Gate, Plan

PLACE_PAGE = "rows/histogram.proof.md"
# Parts of the budget that the place may take, the largest first.
_PLACE_PARTS = [Fraction(1, part) for part in (4, 6, 10, 16, 25)]
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
    """The window to which outcomes are clamped, and what that may hide.

    Attributes
    ----------
    window : OutcomeWindow
        Where outcomes are clamped.
    lost : float
        Standard deviation of what clamping may hide of the effect, in parts of the declared range.
    crowds : OutcomesAtEnds, optional
        How many outcomes lie at the ends of the range, where that was released.
    """

    window: OutcomeWindow = WHOLE_RANGE
    lost: float = 0.0
    crowds: OutcomesAtEnds | None = None

    def hidden(self, study: Study) -> float:
        """Return the standard deviation of what clamping may hide, in units of the outcome."""
        lo, hi = study.outcome_range
        return self.lost * float(hi - lo)

    def details(self, study: Study) -> dict[str, float | str]:
        """Return the ends of the window and what clamping may hide, nothing where the range is whole."""
        if not self.window.halvings:
            return {}
        low, high = map(float, self.window.ends(study))
        return {"outcomes_from": low, "outcomes_to": high, "se_clamping": self.hidden(study)}

    def not_covered(self, study: Study, others: tuple[Fact, ...]) -> tuple[Fact, ...]:
        """Return what the interval of the effect does not cover, `others` being known before the search."""
        if self.crowds is not None:
            others = tuple(self.crowds if one is Caveat.CLAMPING else one for one in others)
        if not self.window.halvings:
            return others
        return (*others, ClampedOutcomes(*map(float, self.window.ends(study))))


WHOLE_INTERVAL = Interval()


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

    default_sd = float(TYPICAL_SD)
    small_sd = default_sd / _TOO_WIDE
    declared_range = expected(Fraction(0), default_sd, 1.0), expected(Fraction(0), small_sd, 1.0)
    for part in _PLACE_PARTS:
        plan = effect_plan(question, share, part)
        amount = float(dict(plan.amounts)["spread"])
        sure = (
            (float(COUNTS_L2) if plan.mechanism == "gaussian" else sqrt(2.0) * float(COUNTS_L1)) / amount
        ) <= _MOST_NOISE * smaller
        cheap = expected(part, default_sd, 1.0) <= _MOST_COST * declared_range[0]
        if sure and cheap and _LEAST_GAIN * expected(part, small_sd, _FOUND * small_sd) <= declared_range[1]:
            return part
    return Fraction(0)


def _noise(plan: Plan, sensitivity: Sensitivities) -> float:
    """Return what noise adds to a squared length: that of the effect, and what that of the variance calls for."""
    estimate_noise = plan.noise(NAMES[0], sensitivity.estimate).variance
    return estimate_noise + sqrt(plan.noise(NAMES[1], sensitivity.variance).variance)


def searched(plan: Plan) -> tuple[tuple[str, str], ...]:
    """Return what to say of the releases that find the place, nothing where none was planned."""
    parts = plan.parts
    return tuple((words, f"{parts[n]:.3g} of the budget") for n, words in PLACE_WORDS.items() if n in parts)


def mechanisms(plan: Plan) -> tuple[str, ...]:
    """Return the noise of a plan: counts of a pure search have Laplace noise."""
    laplace = ("laplace",) if searched(plan) and plan.mechanism == "staircase" else ()
    return (plan.mechanism, *laplace)


def find_interval(
    gate: Gate,
    study: Study,
    people: int,
    plan: Plan,
    sensitivity: Sensitivities,
    smaller: float,
    rows: PublicRows | None = None,
) -> Interval:
    """Return the interval of least expected error from two releases, the whole range if none was planned.

    Parameters
    ----------
    gate : Gate
        Where the histograms are released.
    study : Study
        Says the range of the outcomes that are searched.
    people : int
        Number of rows.
    plan : Plan
        The plan of the effect, which names the search where one pays.
    sensitivity : bounds
        Of the effect, for the whole range.
    smaller : float
        Effective size of the smaller arm: what is clamped may all be of it, and at the far end of its octave.
    rows : PublicRows, optional
        Whose outcomes are searched, where they were moved by a public rule; by default those of the gate.
    """
    if not searched(plan):
        return WHOLE_INTERVAL
    histograms = OutcomeHistograms(pure=plan.mechanism != "gaussian", rows=rows)
    centre, octaves = count_octaves(gate, histograms, people)
    tails, sds = octaves.tails()
    declared = Interval(crowds=octaves.crowds)
    if tails[1] < _SEEN * sds[1]:
        return declared
    shares = octaves.shares(_SURE)
    lo, hi = study.outcome_range
    noise = _noise(plan, sensitivity)
    width = float(hi - lo)
    candidates = [(noise, declared)]
    for index, half_width in enumerate(ENDS):
        # The clipping interval has this half-width; at an end of the range all of it is.
        halvings = len(ENDS) - 1 - index - (0 if octaves.at_end else 1)
        if halvings > 0:
            steps = OUTCOME_STEPS >> halvings
            low = min(max(centre - steps // 2, 0), OUTCOME_STEPS - steps)
            lost = people / smaller * float(shares @ np.maximum(ENDS - half_width, 0.0)) / 2
            interval = Interval(OutcomeWindow(low, halvings), lost, octaves.crowds)
            candidates.append((noise / 4.0**halvings + (lost * width) ** 2, interval))
    return min(candidates, key=lambda one: one[0])[1]
