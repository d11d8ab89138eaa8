"""A weighted sum of private outcomes: one noisy number for the effect, one for its variance.

    effect = sum_i c_i y_i + noise,    variance = V(y) (1 + bias^2) + noise,

in units of the outcome and their square, with c made of public columns, V an estimate of the sampling
variance (from pairs of rows or from lines in features), and `bias` what an interval allows for, in standard
errors. One outcome, in a range of width B, moves the effect by at most B max |c_i|, to which the noise is
scaled. Proofs: `rows/linear/linear_estimate.proof.md`, and `rows/linear/residual_variance.proof.md` where V
is from lines.

In: public coefficients (`LinearEffect`) and private outcomes, read through the gate alone: it adds noise and
lets each release of the plan through once. Out: the effect with an interval, whose variance is that of
sampling plus that of the noise. The split of the budget reads public numbers and steers lengths of intervals
alone.

Outcomes that come in clusters are in `clustered_effect.py`; `effect_of` takes the form that the study calls
for.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from counterveil.estimators.linear.budget_split import chosen_share, effect_plan
from counterveil.estimators.linear.clustered_effect import clustered_effect
from counterveil.estimators.linear.diagnostics import treatment_shares
from counterveil.estimators.linear.linear_estimator import LinearEffect, known_error, release_rows
from counterveil.estimators.linear.outcome_interval import (
    PLACE_PAGE,
    find_interval,
    mechanisms,
    search_part,
    searched,
)
from counterveil.estimators.method import Prepared
from counterveil.inference.arm_means import with_rare_events
from counterveil.numerics.balance import effective_size
from counterveil.results.answering import Facts
from counterveil.results.question import Question
from counterveil.results.result import Result
from counterveil.rows.linear.sensitivity import LinearEstimate
from counterveil.rows.linear.weighted_outcomes import NAMES, WeightedOutcomes
from counterveil.rows.public import PublicData, PublicRows
from counterveil.session import Gate


def effect_of(public: PublicData, question: Question, effect: LinearEffect) -> Prepared[Result]:
    """Return a linear estimator, prepared for its releases: with an error by cluster where the study has clusters."""
    prepare = clustered_effect if public.study.clustered else linear_effect
    return prepare(public, question, effect)


def linear_effect(public: PublicData, question: Question, effect: LinearEffect) -> Prepared[Result]:
    """Return a linear estimator of independent outcomes, prepared for its releases."""
    rows = effect.rows or public.columns
    outcomes = WeightedOutcomes.of(rows, effect.coefficients, effect.variance_form())
    bounds = outcomes.bounds
    sizes = effective_size(rows.treated, np.abs(effect.coefficients))
    share, search_share = _shares(rows, bounds, effect=effect, question=question, smaller_arm=min(sizes))
    plan = effect_plan(question, share, search_share)
    treatment = treatment_shares(public.columns)

    def estimate(gate: Gate) -> Facts:
        interval = find_interval(
            gate, plan, bounds, study=rows.study, people=rows.rows, smaller_arm=min(sizes), rows=rows
        )
        released, variance = outcomes.release(gate, with_variance=share > 0, window=interval.window)
        window_bounds = outcomes.within(interval.window)
        hidden = interval.hidden(rows.study)
        uncertainty = known_error(released, variance, window_bounds.variance_cap, hidden**2)
        return Facts(
            estimate=float(released),
            uncertainty=with_rare_events(uncertainty, public.study.outcome_range, sizes),
            method=effect.method,
            releases=(*searched(plan), *release_rows(window_bounds, variance is not None)),
            not_covered=interval.not_covered(rows.study, effect.not_covered),
            details=effect.details
            | effect.with_bias(uncertainty.sampling_sd)
            | interval.details(rows.study)
            | {"mechanism": question.mechanism, "variance_budget_share": plan.parts.get(NAMES[1], 0.0)},
            diagnostics=effect.diagnostics | treatment,
            assumptions=effect.assumptions,
            independent_variance=True,
        )

    # What the answer repeats of its study is not said of `rows`, whose outcomes may be residuals of a prediction.
    return Prepared(
        question=question,
        plan=plan,
        estimate=estimate,
        pages=(*effect.pages, *([PLACE_PAGE] if search_share else [])),
        mechanisms=mechanisms(plan),
        remarks=effect.remarks,
    )


def _shares(
    rows: PublicRows, bounds: LinearEstimate, effect: LinearEffect, question: Question, smaller_arm: float
) -> tuple[Fraction, Fraction]:
    """Return the variance's share of what the search for outcomes leaves of the budget, and the share of the search."""
    if effect.share is not None:
        return effect.share, Fraction(0)
    share = chosen_share(bounds, question, effect.expected_part)
    search_share = search_part(
        rows.study,
        bounds,
        question,
        smaller_arm=smaller_arm,
        squares=bounds.squares * bounds.factor,
        variance_part=share,
    )
    return share, search_share
