"""The confounder-adjusted effect where everything about a person is private, with an interval.

Treatment and outcome are modelled from one noisy matrix of second moments; the outcome's model is refined on
moments of its residuals; the effect is read off an orthogonal score, into which errors of the two models enter
as a product. The treatment's model is left unshrunk, so that this product has mean zero whatever the alignment
of the two models, and the interval carries its variance.

Lineage: Robinson's (1988) partialling out as an orthogonal score (Chernozhukov et al. 2018) with overlap weights (Li,
Morgan and Zaslavsky 2018); private regression from noisy second moments (Dwork, Talwar, Thakurta and Zhang 2014).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import sqrt

import numpy as np

from counterveil.data.features import feature_map, require_covariates
from counterveil.errors import CounterveilError, refusal
from counterveil.numerics.products import FeatureMap
from counterveil.privacy import Estimand
from counterveil.privacy.caveats import Caveat, ConfoundingBeyond, NotAdjusted
from counterveil.results.answering import Facts, settled
from counterveil.results.measures import OF_MEANS
from counterveil.results.question import Question
from counterveil.results.result import Result
from counterveil.session import BaseSession, Gate
from counterveil.settings import DoublyRobust
from counterveil.statistics.moments.adjusted import (
    arm_adjusted,
    arm_adjusted_means,
    arm_design,
    arms_affordable,
    error_of_score,
    figures,
    linear_scores,
    mechanisms_of,
)
from counterveil.statistics.moments.contrast import ARMS, POOLED, compare, pays
from counterveil.statistics.moments.orthogonal import (
    MOST_ENTRIES,
    ChainSplit,
    Design,
    PublicCovariates,
    affordable,
    bounded,
    fewest_rows,
    inner_share,
    orthogonal_effect,
    split,
)
from counterveil.statistics.moments.records import Records

# The unadjusted contrast, widened by a declared bound on confounding: for where adjustment is not affordable.


def bounded_contrast(session: BaseSession, question: Question, kappa: float) -> Result:
    """Return the private difference in means with kappa sd(y) / (0.75 sd(t)) added at both ends.

    Everything added is computed from the released contrast, so that it costs nothing.
    """
    better = pays(session.batches.rows, question.budget, question.mechanism)
    plain = compare(session, question, ARMS if better else POOLED)
    known = plain.uncertainty
    share = inner_share(float(plain.details["share_treated"]))
    # The contrast weights a row by 1/q or 1/(1-q), at least one over the larger of the two.
    second_moment = max(known.known_sd(1 - question.level) ** 2 - known.extra, 0.0) * session.batches.rows
    sd = max(share, 1 - share) * sqrt(second_moment + plain.estimate**2)
    found = bounded(plain, kappa, sd, share, NotAdjusted(kappa))
    return replace(found, method="unadjusted contrast with a declared bound on confounding")


PAGES = (
    "statistics/moments/record_moments.proof.md",
    "statistics/histogram.proof.md",
    "statistics/moments/free_gram.proof.md",
    "statistics/moments/orthogonal_score.proof.md",
)

_NOT_COVERED = (
    Caveat.UNDECLARED_COVARIATES,
    Caveat.OTHER_THAN_FEATURES,
    Caveat.CLAMPING,
    Caveat.CLIPPED_RESIDUALS,
    Caveat.COVERAGE_MEASURED,
)


def doubly_robust(session: BaseSession, question: Question) -> Result:
    """Return the adjusted private effect, or what the settings say where adjustment is not affordable."""
    require_covariates(session.study, "doubly_robust")
    settings = question.settings or DoublyRobust()
    overlap = question.estimand is Estimand.ATO
    if settings.covariance is not None and not overlap:
        raise _public_correlations(question.estimand)
    if settings.covariance is not None:
        features, design = _public_design(session, question, settings)
    else:
        features, design = arm_design(session, question, settings)
        if overlap and settings.degree == 2 and not design.fits:
            raise _too_many(features.size)
    rule = affordable if overlap else arms_affordable
    means = question.measure in OF_MEANS
    if not rule(design):
        if means or settings.fallback == "refuse" or settings.kappa is None:
            raise _unaffordable(design, rule) if design.fits else _too_many(design.features)
        return bounded_contrast(session, question, settings.kappa)
    if not overlap:
        return (arm_adjusted_means if means else arm_adjusted)(session, question, features, design)
    return _orthogonal(session, question, settings, features, design)


def _orthogonal(
    session: BaseSession, question: Question, settings: DoublyRobust, features: FeatureMap, design: Design
) -> Result:
    """Return the overlap-weighted effect."""
    shares, question = split(design), replace(question, mechanism=design.mechanism)
    plan, kappa = shares.plan(question.budget, question.mechanism), settings.kappa
    low, high = session.study.outcome_range
    known = None
    if settings.covariance is not None:
        known = PublicCovariates(np.array(settings.covariance), settings.means, settings.sds)

    def compute(gate: Gate) -> Facts:
        answer = orthogonal_effect(gate, Records(session.batches, features), design, shares, known, kappa)
        effect, unit = answer.effect, float(high - low) / 2
        facts: dict[str, float | str] = {"adjusted": answer.adjusted}
        facts |= {} if kappa is None else {"kappa": kappa}
        facts |= {} if answer.adjusted else {"confounding_bound": answer.bound * unit}
        facts |= figures(effect, answer.share, unit, design, shares.residual_passes)
        facts["shared_noise_bound"] = effect.bias * unit
        found = Facts(
            **error_of_score(effect, effect.bias + answer.bound, unit, design, 3),
            releases=_releases(shares, design),
            not_covered=_NOT_COVERED,
            details=facts,
        )
        if answer.adjusted:
            trial = session.study.randomised is True
            found["method"] = "orthogonal adjustment, equal to the ATE if the effect is constant"
            found["assumes"] = None if trial else linear_scores(features, inverse=False)
            return found
        assert kappa is not None  # without a bound nothing unadjusted is released
        found["method"], found["condition"] = "unadjusted orthogonal score", NotAdjusted(kappa)
        found["not_covered"] = (ConfoundingBeyond(kappa), *_NOT_COVERED)
        return found

    return settled(Result, session, question, plan, compute, pages=PAGES, mechanisms=mechanisms_of(design))


def _public_design(
    session: BaseSession, question: Question, settings: DoublyRobust
) -> tuple[FeatureMap, Design]:
    """Return the features of public correlations; refuses declared sizes that do not fit, whatever the rows are."""
    assert settings.covariance is not None
    features = feature_map(session.study, 1)
    design = Design(
        session.batches.rows,
        features.size,
        question.budget,
        question.mechanism,
        known_covariance=True,
        known_location=settings.means is not None,
    )
    if len(settings.covariance) != features.size:
        raise refusal("CV-P403", features=features.size, covariance=len(settings.covariance))
    return features, design


def _releases(shares: ChainSplit, design: Design) -> tuple[tuple[str, str], ...]:
    mechanism = "l2-ball noise" if design.pure else "Gaussian noise"
    words = {
        "centre": "means and mean squares of covariates, treatment and outcome",
        "norms": "histogram of the rows' lengths",
        "gram": "moments of covariates with treatment and outcome"
        if design.known_covariance
        else "second moments of covariates, treatment and outcome",
        "first_pass": "first pass over the orthogonal score",
        "score": "orthogonal score",
    }
    return tuple(
        (
            words.get(name, "moments of the outcome's residuals"),
            f"{float(share):.3g} of the budget; "
            + ("Laplace noise" if design.pure and name == "norms" else mechanism),
        )
        for name, share in shares.shares
    )


def _public_correlations(estimand: Estimand) -> CounterveilError:
    return refusal("CV-P406", estimand=estimand.value)


def _unaffordable(design: Design, rule: Callable[[Design], bool]) -> CounterveilError:
    return refusal(
        "CV-P404",
        design=fewest_rows(design, rule),
        features=design.features,
        budget=design.budget,
        rows=design.rows,
    )


def _too_many(features: int) -> CounterveilError:
    return refusal("CV-P405", most_entries=MOST_ENTRIES, features=features)
