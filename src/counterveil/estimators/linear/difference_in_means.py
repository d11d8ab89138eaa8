"""Difference in means of a trial with public arms: a noisy number for the effect, one for its variance.

    effect = mean_1 - mean_0,    variance = s_1^2 / n_1 + s_0^2 / n_0,

in units of the outcome and their square: means, sample variances s^2 and sizes n of the treated (1) and the
others (0). The variance is the conservative one of Neyman [1]_.

In: private outcomes in a range of width B; who was treated, and so n_1 and n_0, is public. Outcomes are read
through the gate alone, which adds noise and lets each release of the plan through once (a plan names the
releases and the part of the budget that each pays). Out: both numbers with noise, the effect with an
interval.

Why it is private: one outcome moves the effect by at most B / min(n_1, n_0) and the variance by at most the
square of that, and noise is scaled to both. Proof: `rows/linear/difference_in_means.proof.md`. With
`find_range` outcomes are first searched for and clamped to a window (`rows/histogram.proof.md`), which stands
in for B; study sites are weighted by their rows. Clustered outcomes go to `clustered_effect.py`.

References
----------
.. [1] Neyman, J. (1923). On the application of probability theory to agricultural experiments. Translated in
   Statistical Science 5 (1990), 465-472.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from counterveil.data import Study
from counterveil.estimators.linear.budget_split import TYPICAL_SD, effect_plan, variance_share
from counterveil.estimators.linear.clustered_effect import clustered_effect
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
from counterveil.inference.clusters import ClusterUncertainty
from counterveil.inference.uncertainty import Uncertainty
from counterveil.privacy.provenance import Estimator, Quantity, WithinSites
from counterveil.results.answering import Facts
from counterveil.results.question import Question, causal_caveats
from counterveil.results.result import Result
from counterveil.rows.linear.arm_contrast import ArmContrast
from counterveil.rows.linear.sensitivity import MeanContrast, SitesContrast
from counterveil.rows.linear.weighted_outcomes import NAMES
from counterveil.rows.public import PublicData, PublicRows
from counterveil.session import Gate, Released
from counterveil.settings.methods import asked_share

# Rows that an arm has at least: its variance needs two.
MIN_ARM_ROWS = 2
PAGE = "rows/linear/difference_in_means.proof.md"


def difference_in_means(public: PublicData, question: Question) -> Prepared[Result]:
    """Return the difference in means of a trial, prepared for its releases."""
    study = public.study
    if study.clustered:
        return clustered_effect(public, question, weighted_sum(public.columns, question))
    own_sizes = public.arm_sizes
    sizes_by_site = public.of_sites("arms", own_sizes, MIN_ARM_ROWS)
    control, treated = map(sum, zip(*sizes_by_site, strict=True))
    weight = Fraction(sum(own_sizes), treated + control)
    lo, hi = study.outcome_range
    bounds = SitesContrast(hi - lo, sizes_by_site)
    smaller_arm = float(min(bounds.sizes))
    share = variance_share_of(bounds, question)
    search_share = Fraction(0)
    if asked_share(question.settings) is None and not _whole_clusters(study):
        search_share = search_part(
            study, bounds, question, smaller_arm=smaller_arm, squares=bounds.squares, variance_part=share
        )
    plan = effect_plan(question, share, search_share)

    def estimate(gate: Gate) -> Facts:
        interval = find_interval(gate, plan, bounds, study=study, people=public.rows, smaller_arm=smaller_arm)
        contrast = ArmContrast(bounds, window=interval.window, weight=weight)
        effect, variance = contrast.release(gate, with_variance=share > 0)
        return Facts(
            estimate=float(effect),
            uncertainty=_uncertainty(
                effect, variance, bounds=contrast.window_bounds, study=study, hidden=interval.hidden(study)
            ),
            method=WithinSites(len(sizes_by_site)),
            releases=(
                *searched(plan),
                *release_rows(
                    contrast.window_bounds,
                    share > 0,
                    (Quantity.DIFFERENCE_IN_MEANS, Quantity.ITS_VARIANCE),
                ),
            ),
            not_covered=interval.not_covered(study, causal_caveats(study, question.estimand)),
            details={
                "rows": public.rows,
                "treated": treated,
                "control": control,
                **interval.details(study),
                "mechanism": question.mechanism,
                "variance_budget_share": plan.parts.get(NAMES[1], 0.0),
            },
            independent_variance=True,
        )

    return Prepared(
        question=question,
        plan=plan,
        estimate=estimate,
        pages=(PAGE, PLACE_PAGE) if search_share else (PAGE,),
        mechanisms=mechanisms(plan),
    )


def weighted_sum(rows: PublicRows, question: Question) -> LinearEffect:
    """Return the same effect as sum_i c_i Y_i, with c_i = 1/n_1 for the treated and -1/n_0 for the others."""
    treated = int(rows.treated.sum())
    control = rows.rows - treated
    return LinearEffect(
        method=Estimator.DIFFERENCE_IN_MEANS,
        coefficients=np.where(rows.treated, 1 / treated, -1 / control),
        pairs=None,
        not_covered=causal_caveats(rows.study, question.estimand),
        details={"rows": rows.rows, "treated": treated, "control": control},
    )


def variance_share_of(bounds: MeanContrast | SitesContrast, question: Question) -> Fraction:
    """Return the variance's share of the budget: the one asked for, else chosen from public numbers alone."""
    declared = asked_share(question.settings)
    if declared is not None:
        return declared
    typical_variance = TYPICAL_SD**2 * bounds.width**2 * bounds.squares
    return variance_share(bounds, question, typical_variance)


def _whole_clusters(study: Study) -> bool:
    return study.person is not None and study.person.whole_cluster


def _uncertainty(
    effect: Released, variance: Released | None, bounds: SitesContrast, study: Study, hidden: float
) -> Uncertainty:
    plain = known_error(effect, variance, bounds.variance_cap, hidden**2)
    if not _whole_clusters(study):
        return with_rare_events(plain, study.outcome_range, map(float, bounds.sizes))
    # Clusters are few: Student's t, with the degrees of freedom of the two variances if they are equal,
    # (1/n_1 + 1/n_0)^2 / sum_a 1 / (n_a^2 (n_a - 1)).
    per_arm = sum(Fraction(1, size**2 * (size - 1)) for size in bounds.sizes)
    return ClusterUncertainty(
        effect.noise,
        plain.variance,
        plain.variance_cap,
        plain.variance_noise,
        freedom=float(bounds.squares**2 / per_arm),
    )
