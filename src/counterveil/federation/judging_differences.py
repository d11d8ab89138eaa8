"""Whether a released difference fits the question: its noise, its largest variance, and where both let it lie.

What follows from public numbers is recomputed. Sensitivities of a difference in means follow from both arms, those of
a trial's contrast from the number of rows and the share treated. Weights of other averages of private outcomes are
not known, but none is negative and they add up to one. Scores of private records are bounded by released numbers:
methods that locate outcomes in their range may have less noise than any rule on the range allows.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import isclose, sqrt
from typing import Any

from counterveil.bounded_reading import Fields
from counterveil.federation.messages import Ask
from counterveil.federation.noise_checks import (
    LEAST_PART,
    NEAR,
    chance_of_treatment,
    check_budget,
    check_variance,
    check_weighted,
    hold,
    is_plain,
    noise_like,
    sensitivity_of,
    squared_noise,
)
from counterveil.federation.public_limits import (
    FEWEST_IN_ARM,
    MOST_ROWS,
    NEVER,
    OUT_OF_REACH,
    SLACK,
    Declared,
    budget_of,
    farthest,
    most_mu,
)
from counterveil.inference import Uncertainty, half_width, other_variance, rare_events, t_factor
from counterveil.inference.uncertainty import HEADROOM
from counterveil.numerics.public_choices import LEAST_SHARE, LEFT_OF_TREATMENT
from counterveil.privacy import Unit
from counterveil.questions.pooled.reading import rows_of
from counterveil.results.effect import uncertainty_to_dict
from counterveil.results.result import Result
from counterveil.statistics.linear.sensitivity import DifferenceInMeans
from counterveil.statistics.moments.sensitivity import CentredContrast

# Methods for private records whose scores range over the outcome's whole range, whatever the rows are.
# What outcomes less a prediction range over, beside the range of outcomes: the prediction is cut to half of the range
# on either side, and its fit takes away at most half of the effect; one that is all noise may seem to add to it.
_ADJUSTED = 0.5, 4.0
# The largest variance of an average of bounded scores is a quarter of this; strata count some rows more than once.
_MOST_CAP = 4
# An unadjusted contrast has the largest bias for a given bound on confounding where an arm is as small as allowed.
_PER_KAPPA = 1 / (LEFT_OF_TREATMENT * sqrt(LEAST_SHARE * (1 - LEAST_SHARE)))


def check_difference(ask: Ask, declared: Declared, result: Result) -> None:
    """Raise the reason for setting a site aside whose difference does not follow from the question."""
    _check_amounts(ask, result.uncertainty)
    if Unit(ask.protects) is Unit.RECORD:
        less, rows = _check_records(ask, declared, result), _rows_of_scores(ask, result)
        # The second moment is one about a centre that lies in the range.
        about = abs(result.estimate) + 2 * float(declared.width)
        more = squared_noise(about, result.uncertainty, rows)
    else:
        less = more = 0.0
        if ask.method == "difference_in_means":
            _check_plain(declared, result)
        else:
            _check_weighted(ask, declared, result)
    _check_reach(declared, result)
    check_variance(result.uncertainty, more, less)


def _check_amounts(ask: Ask, known: Uncertainty) -> None:
    """Check that no noise is for a larger epsilon or mu than was asked for."""
    epsilon, mu = budget_of(ask).epsilon, most_mu(ask)
    document = uncertainty_to_dict(known)
    for mechanism in (document["noise"], document["variance_noise"]):
        facts: Mapping[str, Any] = mechanism or {}
        if "epsilon" in facts:
            hold(Fields("mechanism", facts).rational("epsilon", 0, 1e9) <= epsilon)
        if "mu" in facts:
            hold(mu is not None and Fields("mechanism", facts).rational("mu", 0, 1e9) <= mu * SLACK)


def _check_plain(declared: Declared, result: Result) -> None:
    """Check a difference in means: arms give the sensitivities, and these the noise and the largest variance."""
    counts, known = Fields("details", result.details), result.uncertainty
    treated, control = (counts.whole(arm, FEWEST_IN_ARM, MOST_ROWS) for arm in ("treated", "control"))
    wanted = DifferenceInMeans(declared.width, treated, control)
    rare = rare_events((declared.low, declared.high), (treated, control))
    hold(treated + control == rows_of(result) and result.variance_apart)
    hold(sensitivity_of(known.noise) == wanted.estimate)
    hold(isclose(known.variance_cap, float(wanted.variance_cap) + rare, rel_tol=1e-12))
    hold(known.extra_at(NEVER) == known.bias == 0)
    if known.variance_noise is None:
        hold(known.variance == known.variance_cap)
    else:
        hold(sensitivity_of(known.variance_noise) == wanted.variance)


def _check_weighted(ask: Ask, declared: Declared, result: Result) -> None:
    """Check a difference of two averages of private outcomes: some weight is 2/n or more, and none is above one."""
    rows, (narrow, wide) = rows_of(result) or 1, declared.residual_widths(ask)
    step = sensitivity_of(result.uncertainty.noise)
    hold(2 * narrow <= step * rows * Fraction(1 + NEAR))
    largest = float(step / narrow)
    # Effective sizes are no less than one over the largest weight.
    rare = rare_events((declared.low, declared.high), (1 / largest, 1 / largest))
    check_weighted(ask, wide, result.uncertainty, rare)


def _check_records(ask: Ask, declared: Declared, result: Result) -> float:
    """Check a difference of private records, and return the most that was taken off its variance."""
    known, rows = result.uncertainty, rows_of(result) or 1
    hold(other_variance(known) > 0)
    _check_bias(ask, declared, result)
    if is_plain(known.noise):
        hold(
            known.variance_cap <= _MOST_CAP * float(sensitivity_of(known.noise)) ** 2 * rows + _rare(declared)
        )
    if ask.method == "trial":
        return _check_contrast(ask, declared, result)
    if ask.method == "stratified":
        hold(other_variance(known) >= declared.least_noise(ask, rows))
    # Others may fall back to the contrast, which says what share was treated.
    return _chance(result, rows) if "share_treated" in result.details and is_plain(known.noise) else 0.0


def _rare(declared: Declared) -> float:
    """Return the most that few events add to a variance, in arms of a person each."""
    return rare_events((declared.low, declared.high), (1.0, 1.0))


def _check_bias(ask: Ask, declared: Declared, result: Result) -> None:
    """Check the bias that an interval holds: it is larger than the range where a bound on confounding is asked for."""
    known, kappa, most = result.uncertainty, ask.settings.get("kappa"), 2 * float(declared.width)
    if result.condition is not None and isinstance(kappa, int | float):
        squares = HEADROOM * known.variance_cap * (rows_of(result) or 1) + result.estimate**2
        most += float(kappa) * _PER_KAPPA * sqrt(squares)
    hold(known.bias <= most)


def _check_contrast(ask: Ask, declared: Declared, result: Result) -> float:
    """Check a trial's contrast: rows and the share treated bound its sensitivity, which gives all of the rest."""
    known, rows, share = result.uncertainty, rows_of(result) or 1, _share(result)
    check_budget(ask, [known.noise, known.variance_noise])
    hold(known.bias == known.ball_variance == 0)
    step, width = float(sensitivity_of(known.noise)), declared.width
    # It moves least where it is centred in the middle, and most at either end.
    middle, *ends = (
        float(CentredContrast(width, rows, share, centre).mean) for centre in (width / 2, Fraction(0), width)
    )
    shorter, longer = _ADJUSTED if "adjusted" in result.details else (1.0, 1.0)
    hold(shorter * middle * (1 - NEAR) <= step <= longer * max(ends) * (1 + NEAR))
    sizes = rows * float(share), rows * float(1 - share)
    rare = rare_events((declared.low, declared.high), sizes)
    hold(isclose(known.variance_cap, step**2 * rows / 4 + rare, rel_tol=NEAR))
    # The largest square is that of an end of the range of scores, of which one is at least half as long.
    squares = float(sensitivity_of(known.variance_noise))
    hold(step**2 / 4 * (1 - NEAR) <= squares <= step**2 * (1 + NEAR))
    _check_extra(ask, declared, result, share)
    return _chance(result, rows)


def _share(result: Result) -> Fraction:
    """Return the share treated as released, held away from 0 and 1."""
    said = Fraction(Fields("details", result.details).number("share_treated", 0, 1))
    hold(LEAST_SHARE * Fraction(1 - NEAR) <= min(said, 1 - said))
    return said


def _check_extra(ask: Ask, declared: Declared, result: Result, share: Fraction) -> None:
    """Check what an error in the share adds: no more than its least budget makes."""
    known, rows = result.uncertainty, rows_of(result) or 1
    whole = most_mu(ask) if "mu" in (uncertainty_to_dict(known)["noise"] or {}) else None
    least = LEAST_PART**2 * (budget_of(ask).epsilon if whole is None else whole**2)
    spread = 1 / float(share * (1 - share))
    noise = noise_like(known.noise, Fraction(1, rows), least).variance * spread**2
    width = _ADJUSTED[1] * float(declared.width)
    off = width / 2 + abs(result.estimate)
    return hold(known.extra <= noise * (off**2 + width**2 * noise) * (1 + NEAR))


def _chance(result: Result, rows: int) -> float:
    """Return the most that a contrast's variance is less for chance in who was treated."""
    share = Fields("details", result.details).number("share_treated", float(LEAST_SHARE) * (1 - NEAR), 1)
    share = min(share, 1 - float(LEAST_SHARE))
    # The centre is no farther than half of the range of scores, whose length the sensitivity gives.
    width = 2 * share * (1 - share) * float(sensitivity_of(result.uncertainty.noise)) * rows
    off = width / 2 + abs((1 - 2 * share) * result.estimate)
    return chance_of_treatment(off, share, rows)


def _rows_of_scores(ask: Ask, result: Result) -> float:
    """Return how many scores the variance is one of the mean of: those of folds, or of rows."""
    rows = rows_of(result) or 1
    if ask.method not in ("fold_aggregation", "auto") or "folds" not in result.details:
        return rows
    folds = Fields("details", result.details).whole("folds", 2, rows)
    # Raised so that normal quantiles are Student's.
    return (folds - 1) / t_factor(folds - 1, 1 - result.level) ** 2


def _check_reach(declared: Declared, result: Result) -> None:
    """Check that an estimate lies where declared outcomes and its noise can put it."""
    known, width = result.uncertainty, float(declared.width)
    sampling = sqrt(min(known.variance_cap, width**2) + known.extra_at(NEVER))
    reach = width + known.bias + half_width(sampling, None, NEVER) + farthest(known.noise)
    hold(abs(result.estimate) <= reach, OUT_OF_REACH)
