"""The comparison of a trial's arms, as they are or after a prediction from covariates is taken off every outcome.

Everything about a person is private. In a trial treatment does not depend on covariates, so that the mean of
t (y - g)/q - (1-t) (y - g)/(1-q) has the effect as its mean whatever prediction g of a person's covariates is taken
off; a good one leaves less to vary. g is made of released moments and cut to a released bound; no outcome is
clipped. The rest is the plain contrast of y - g, whose range is longer by that bound at both ends, times a factor
just above one for what a fit to the same rows takes away. Without privacy this is the analysis of covariance.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from counterveil.data import Sums
from counterveil.data.encoding import outcome_unit
from counterveil.data.features import feature_map, require_covariates
from counterveil.numerics.arms import Arms, arm_totals
from counterveil.privacy import Guarantee
from counterveil.privacy.caveats import Target
from counterveil.results.question import Question, refuse_undeclared_trial
from counterveil.results.result import Result
from counterveil.session import Gate, Plan, Session
from counterveil.settings import Trial
from counterveil.statistics.moments.contrast import (
    ARMS,
    CENTRES_MECHANISM,
    PAGES,
    POOLED,
    compare,
    pays,
    release,
    result_of,
)
from counterveil.statistics.moments.records import Records, TableRecords
from counterveil.statistics.moments.sensitivity import CentredContrast
from counterveil.statistics.moments.trial_model import (
    Numbers,
    Prediction,
    Split,
    adjustment_pays,
    learn,
    split,
)

_PAGES = (
    *PAGES[ARMS],
    "statistics/moments/record_moments.proof.md",
    "statistics/histogram.proof.md",
    "statistics/moments/free_gram.proof.md",
)
_WORDS = {
    "centre": "means and mean squares of covariates, treatment and outcome",
    "norms": "histogram of the rows' lengths",
    "model": "moments of covariates with outcomes",
    "fit": "regression of outcomes on one direction",
}


def trial(session: Session, question: Question) -> Result:
    """Return the private effect in a trial, adjusted for covariates or not; n is public and nothing else is.

    In a study that is not declared a trial it is a comparison, whose interval is not one for the effect.
    """
    settings = question.settings or Trial()
    if "auto" in (settings.adjustment, settings.centre) and settings.adjustment != "covariates":
        # A ledger that adds up Gaussian noise counts pure noise dearly.
        if question.open_noise and session.account().rule == "sum":
            question = replace(question, mechanism="staircase")
        settings = chosen(session, question, settings)
    if settings.adjustment == "covariates":
        return _adjusted(session, question)
    # Changes are compared under parallel trends, which the answer names.
    is_trial = session.study.randomised is True or session.study.before is not None
    return compare(session, question, settings.centre, None if is_trial else Target.CONFOUNDED_DIFFERENCE)


def chosen(session: Session, question: Question, settings: Trial) -> Trial:
    """Return the settings with what they leave open chosen from public numbers."""
    is_open = settings.adjustment == "auto" and session.study.randomised is True
    if is_open and adjustment_pays(numbers_of(session, question)):
        return Trial("covariates")
    centred = pays(session.batches.rows, question.budget, question.mechanism)
    return Trial("none", ARMS if centred else POOLED)


def _adjusted(session: Session, question: Question) -> Result:
    study = session.study
    refuse_undeclared_trial(study)
    require_covariates(study, "trial")
    # One delta serves the model; numbers have the smaller, pure noise.
    question = replace(question, mechanism="staircase") if question.open_noise else question
    numbers = numbers_of(session, question)
    shares = split(numbers)
    plan = shares.plan(numbers)
    records = Records(session.batches, feature_map(study, 1))

    def compute(gate: Gate) -> dict[str, object]:
        found = learn(gate, records, numbers.design(shares.part), shares.form)
        found = replace(found, bound=found.cut(plan, numbers.rows))
        return _compared(gate, session, question, plan, shares, records, found).stored()

    return Result.from_dict(session.run(question.request(plan, study), compute))


def numbers_of(session: Session, question: Question) -> Numbers:
    """Return the public numbers that the split depends on."""
    study = session.study
    features = feature_map(study, 1).size
    return Numbers(session.batches.rows, features, question.budget, question.mechanism)


def residual_arm_sums(records: TableRecords, prediction: Prediction) -> Sums:
    """Return both arms' totals of outcomes less what is predicted of them, moved by the bound to start at zero."""
    left = [part.steps - prediction.steps(part) + prediction.bound_steps for part in records.parts()]
    return (arm_totals(records.table.treated, np.concatenate(left)).sums,)


def residual_totals(records: Records, prediction: Prediction) -> tuple[Arms, Fraction, Fraction]:
    """Return both arms' totals of outcomes less what is predicted of them, their unit and their public range."""
    (totals,) = records.run(residual_arm_sums, prediction)
    study = records.source.study
    low, high = study.outcome_range
    step = outcome_unit(study.outcome_bounds)
    fitted = prediction.fitted(records.count)
    width = (high - low + 2 * prediction.bound_steps * step) * fitted
    return Arms.of(totals), step * fitted, width


def _compared(
    gate: Gate,
    session: Session,
    question: Question,
    plan: Plan,
    shares: Split,
    records: Records,
    prediction: Prediction,
) -> Result:
    """Return the contrast of outcomes less what is predicted of them."""
    rows = session.batches.rows
    arms, unit, width = residual_totals(records, prediction)
    released = release(gate, plan, arms, unit, width, session.study.treated_share, ARMS)
    sensitivity = CentredContrast(width, rows, released[0].share, released[0].centre)
    noise = plan.noise("moment", sensitivity.second_moment / rows)
    plain = result_of(session, question, ARMS, *released, sensitivity, noise)
    plain = replace(plain, guarantee=_guarantee(session, question, shares))
    return _described(plain, shares, records.features.size, prediction)


def _guarantee(session: Session, question: Question, shares: Split) -> Guarantee:
    """Return the guarantee with the pages of every mechanism drawn from, and of what joins pure and Gaussian draws."""
    pages = _PAGES if shares.form == "gram" else (*_PAGES, "statistics/moments/orthogonal_score.proof.md")
    own = "ball"
    if not question.budget.pure:
        pages, own = (*pages, "accounting/filters.proof.md"), "gaussian"
    return question.guarantee(session, pages, mechanisms=(own, CENTRES_MECHANISM, question.mechanism))


def _described(plain: Result, shares: Split, features: int, prediction: Prediction) -> Result:
    used = prediction.bound_steps > 0
    explained = (prediction.sd / prediction.outcome_sd) ** 2 if used else 0.0
    mechanisms = dict.fromkeys(_WORDS, "l2-ball") | {"norms": "Laplace"}
    if not plain.spent.pure:
        mechanisms = dict.fromkeys(_WORDS, "Gaussian")
    words = tuple((said, f"{mechanisms[name]} noise") for name, said in _WORDS.items())
    return replace(
        plain,
        method="contrast adjusted for covariates" if used else "contrast; covariates explain too little",
        releases=(*words, *plain.releases),
        details=plain.details
        | {
            "adjusted": used,
            "features": features,
            "model_budget_share": float(shares.part),
            "explained_variance": min(explained, 1.0),
        },
    )
