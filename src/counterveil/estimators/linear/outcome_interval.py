"""Where outcomes lie within their declared range: a noisy search for a narrower window to clamp them to.

Noise is scaled to the width of the range. A part of the budget finds a shorter window, to which outcomes are
clamped; what the clamping may hide becomes a part of the error of the effect. From released counts of
outcomes by octaves of their distance to a released centre, in squared units of the outcome,

    expected squared error(h) = noise / 4^h + (range * rows / smaller arm * lost(h) / 2)^2,

for a window of the range halved h times (0 is the whole range). noise is what noise adds to a squared length
with the whole range; it falls by 4 with every halving, as sensitivities are in proportion to the width.
lost(h) is the mean by which outcomes are moved, in half ranges, if all of an octave's lie at its far end;
(rows / smaller arm) supposes that all of them may be in the smaller arm.

In: private outcomes, read through the gate alone (it adds noise and lets each planned release through once).
Out: an `Interval` made of released counts. Why it is private: one outcome moves counts of a histogram by at
most 2 in total; proof: `rows/histogram.proof.md`. A window that was released before stands in for the range
in the bounds of the effect (`rows/linear/linear_estimate.proof.md`, clamped outcomes). The constants steer
whether the search is made, what it takes and how noisy tails are read, and so lengths and coverage of
intervals; privacy does not depend on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

import numpy as np

from counterveil.data import OUTCOME_STEPS, Study
from counterveil.estimators.linear.budget_split import TYPICAL_SD, Sensitivities, effect_plan
from counterveil.estimators.outcome_place import ENDS, PLACE_QUANTITIES, count_octaves
from counterveil.privacy.caveats import Caveat, ClampedOutcomes, Fact, OutcomesAtEnds
from counterveil.privacy.provenance import BudgetPart, ReleaseRow
from counterveil.results.question import Question
from counterveil.rows.counts import COUNTS_L1, COUNTS_L2
from counterveil.rows.linear.weighted_outcomes import NAMES
from counterveil.rows.outcome_histograms import OutcomeHistograms
from counterveil.rows.outcome_window import WHOLE_RANGE, OutcomeWindow
from counterveil.rows.public import PublicRows
from counterveil.session import Gate, Plan

PLACE_PAGE = "rows/histogram.proof.md"
# Parts of the budget that the search may take, the largest first.
_SEARCH_PARTS = [Fraction(1, denominator) for denominator in (4, 6, 10, 16, 25)]
# Most by which the search may lengthen an interval whose range is right (squared lengths).
_MOST_COST = 1.04
# Least by which it must shorten the interval of a range that is so many times too wide (squared lengths).
_LEAST_GAIN = 1.21
_TOO_WIDE = 20
# Width of the window that a search is expected to leave, in standard deviations of outcomes.
_EXPECTED_WINDOW_SDS = 15
# Most noise of an octave's count, as a part of the smaller arm.
_MOST_NOISE = 1 / 50
# Nothing is clamped unless outcomes beyond the innermost octave exceed so many standard deviations of their noise.
_SEEN_SDS = 6.0
# A farther tail is taken to be there where it exceeds so many.
_TAIL_SDS = 2.5


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
            others = tuple(self.crowds if caveat is Caveat.CLAMPING else caveat for caveat in others)
        if not self.window.halvings:
            return others
        return (*others, ClampedOutcomes(*map(float, self.window.ends(study))))


WHOLE_INTERVAL = Interval()


def search_part(
    study: Study,
    bounds: Sensitivities,
    question: Question,
    *,
    smaller_arm: float,
    squares: Fraction,
    variance_part: Fraction,
) -> Fraction:
    """Return the part of the budget that the search takes, 0 where it does not pay; reads public numbers.

    Only where it is asked for: few outcomes that noise hides may lie far beyond what is found, and an
    interval that allowed for them would be longer than one without a search. Outcomes from 0 to 1 are not
    searched.

    Parameters
    ----------
    study : Study
        Says the range of outcomes.
    bounds : bounds
        Of the effect, for the whole range.
    question : Question
        Its settings say whether a search is asked for.
    smaller_arm : float
        Effective size of the smaller arm.
    squares : Fraction
        Sum of squared coefficients times what is allowed for bias.
    variance_part : Fraction
        Part of what the search leaves of the budget that goes to the variance.
    """
    low, high = study.outcome_range
    is_asked = getattr(question.settings, "find_range", False)
    if not is_asked or (low == 0 and high == 1) or not variance_part:
        return Fraction(0)
    range_width = float(high - low)

    def expected(search_share: Fraction, sd: float, window: float) -> float:
        """Return the squared length for outcomes of an SD in windows of a width, both in declared ranges."""
        noise = _noise_length(effect_plan(question, variance_part, search_share), bounds)
        return (sd * range_width) ** 2 * float(squares) + window**2 * noise

    default_sd = float(TYPICAL_SD)
    small_sd = default_sd / _TOO_WIDE
    without_search = expected(Fraction(0), default_sd, 1.0)
    small_without_search = expected(Fraction(0), small_sd, 1.0)
    for search_share in _SEARCH_PARTS:
        plan = effect_plan(question, variance_part, search_share)
        amount = float(dict(plan.amounts)["spread"])
        count_noise = float(COUNTS_L2) if plan.mechanism == "gaussian" else sqrt(2.0) * float(COUNTS_L1)
        sure = count_noise / amount <= _MOST_NOISE * smaller_arm
        cheap = expected(search_share, default_sd, 1.0) <= _MOST_COST * without_search
        if sure and cheap:
            small_with_search = expected(search_share, small_sd, _EXPECTED_WINDOW_SDS * small_sd)
            if _LEAST_GAIN * small_with_search <= small_without_search:
                return search_share
    return Fraction(0)


def _noise_length(plan: Plan, bounds: Sensitivities) -> float:
    """Return what noise adds to a squared length: that of the effect, and what that of the variance calls for."""
    estimate_noise = plan.noise(NAMES[0], bounds.estimate).variance
    return estimate_noise + sqrt(plan.noise(NAMES[1], bounds.variance).variance)


def searched(plan: Plan) -> tuple[ReleaseRow, ...]:
    """Return the releases that find the place, none where none was planned."""
    shares = plan.parts
    return tuple(
        (quantity, BudgetPart(shares[name])) for name, quantity in PLACE_QUANTITIES.items() if name in shares
    )


def mechanisms(plan: Plan) -> tuple[str, ...]:
    """Return the noise of a plan: counts of a pure search have Laplace noise."""
    laplace = ("laplace",) if searched(plan) and plan.mechanism == "staircase" else ()
    return (plan.mechanism, *laplace)


def find_interval(
    gate: Gate,
    plan: Plan,
    bounds: Sensitivities,
    *,
    study: Study,
    people: int,
    smaller_arm: float,
    rows: PublicRows | None = None,
) -> Interval:
    """Return the interval of least expected error from two releases, the whole range if none was planned.

    Parameters
    ----------
    gate : Gate
        Where the histograms are released.
    plan : Plan
        The plan of the effect, which names the search where one pays.
    bounds : bounds
        Of the effect, for the whole range.
    study : Study
        Says the range of the outcomes that are searched.
    people : int
        Number of rows.
    smaller_arm : float
        Effective size of the smaller arm: what is clamped may all be of it, and at the far end of its octave.
    rows : PublicRows, optional
        Whose outcomes are searched, where they were moved by a public rule; by default those of the gate.
    """
    if not searched(plan):
        return WHOLE_INTERVAL
    histograms = OutcomeHistograms(pure=plan.mechanism != "gaussian", rows=rows)
    centre, octaves = count_octaves(gate, histograms, people)
    tails, tail_sds = octaves.tails()
    declared_range = Interval(crowds=octaves.crowds)
    if tails[1] < _SEEN_SDS * tail_sds[1]:
        return declared_range
    shares = octaves.shares(_TAIL_SDS)
    lo, hi = study.outcome_range
    range_width = float(hi - lo)
    noise = _noise_length(plan, bounds)
    best = declared_range
    least_error = noise
    for index, half_width in enumerate(ENDS):
        # The window has this half-width on both sides of the centre; at an end of the range all of it is on one side.
        halvings = len(ENDS) - 1 - index - (0 if octaves.at_end else 1)
        if halvings <= 0:
            continue
        steps = OUTCOME_STEPS >> halvings
        low = min(max(centre - steps // 2, 0), OUTCOME_STEPS - steps)
        lost = people / smaller_arm * float(shares @ np.maximum(ENDS - half_width, 0.0)) / 2
        error = noise / 4.0**halvings + (lost * range_width) ** 2
        if error < least_error:
            least_error = error
            best = Interval(OutcomeWindow(low, halvings), lost, octaves.crowds)
    return best
