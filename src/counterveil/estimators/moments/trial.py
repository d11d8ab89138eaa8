"""`method="trial"` where everything about a person is private: arms compared, adjusted for covariates or not.

In a trial treatment does not depend on covariates, so that the contrast of outcomes less a prediction of them
has the effect as its mean whatever the prediction: a good one leaves less to vary, a poor one leaves the
interval longer, never wrong. With g the prediction, cut to [-h, h], f a factor just above one for what a fit
to the same rows takes away, and B the width of the outcome's range, the adjusted comparison is the plain
contrast of f (y - g + h), whose range is f (B + 2 h). No outcome is clipped. Without privacy this is the
analysis of covariance.

In: private treatments, outcomes y and covariates; ranges and n are public. Out: the effect in units of the
outcome. Proofs: `rows/moments/centred_contrast.proof.md` and `rows/moments/arm_sums.proof.md` (contrast and
its centre), and for the prediction `rows/moments/record_moments.proof.md`, `rows/histogram.proof.md`,
`rows/moments/free_gram.proof.md` and `rows/moments/orthogonal_score.proof.md`.
"""

from __future__ import annotations

from dataclasses import replace

from counterveil.data.features import feature_map, require_covariates
from counterveil.estimators.method import Prepared
from counterveil.estimators.moments.contrast import (
    ARMS,
    CENTRES_MECHANISM,
    PAGES,
    POOLED,
    compare,
    facts_of,
    is_worthwhile,
    release,
)
from counterveil.estimators.moments.trial_adjustment import TrialNumbers, adjustment_is_worthwhile, split
from counterveil.estimators.moments.trial_prediction import Prediction, learn
from counterveil.privacy.caveats import Target
from counterveil.privacy.provenance import Estimator, Noise, Quantity, ReleaseRow
from counterveil.results.answering import Facts
from counterveil.results.question import Question, refuse_undeclared_trial
from counterveil.results.result import Result
from counterveil.rows.moments.trial_residuals import residuals_by_arm
from counterveil.rows.public import PublicData
from counterveil.rows.records import Records
from counterveil.session import Gate
from counterveil.settings import Trial

_ADJUSTED_PAGES = (
    *PAGES[ARMS],
    "rows/moments/record_moments.proof.md",
    "rows/histogram.proof.md",
    "rows/moments/free_gram.proof.md",
)
# What is released for the model, by the name in the plan.
_MODEL_QUANTITIES = {
    "centre": Quantity.CENTRES_OF_COLUMNS,
    "norms": Quantity.ROW_LENGTHS,
    "model": Quantity.COVARIATE_OUTCOME_MOMENTS,
    "fit": Quantity.ONE_DIRECTION,
}


def trial(public: PublicData, question: Question) -> Prepared[Result]:
    """Return the effect in a trial, adjusted for covariates or not; n is public and nothing else is.

    In a study that is not declared a trial it is a comparison, whose interval is not one for the effect.
    """
    settings = question.settings or Trial()
    if "auto" in (settings.adjustment, settings.centre) and settings.adjustment != "covariates":
        settings = chosen(public, question, settings)
    if settings.adjustment == "covariates":
        return adjusted(public, question)
    # Changes are compared under parallel trends, which the answer names.
    is_trial = public.study.randomised is True or public.study.before is not None
    return compare(public, question, settings.centre, None if is_trial else Target.CONFOUNDED_DIFFERENCE)


def chosen(public: PublicData, question: Question, settings: Trial) -> Trial:
    """Return the settings with what they leave open chosen from public numbers."""
    is_open = settings.adjustment == "auto" and public.study.randomised is True
    if is_open and adjustment_is_worthwhile(numbers_of(public, question)):
        return Trial("covariates")
    centred = is_worthwhile(public.rows, question.budget, question.mechanism)
    return Trial("none", ARMS if centred else POOLED)


def numbers_of(public: PublicData, question: Question) -> TrialNumbers:
    """Return the public numbers that the split depends on."""
    features = feature_map(public.study, 1).size
    return TrialNumbers(public.rows, features, question.budget, question.mechanism)


def adjusted(public: PublicData, question: Question) -> Prepared[Result]:
    """Return the contrast of outcomes less what covariates predict of them."""
    study = public.study
    refuse_undeclared_trial(study)
    require_covariates(study, "trial")
    # One delta serves the model; numbers have the smaller, pure noise.
    question = replace(question, mechanism="staircase") if question.open_noise else question
    pure = question.budget.pure
    numbers = numbers_of(public, question)
    shares = split(numbers)
    plan = shares.plan(numbers)
    features = feature_map(study, 1)

    def estimate(gate: Gate) -> Facts:
        records = Records.at(gate, features)
        prediction = learn(gate, records, numbers.design(shares.part), shares.form)
        prediction = replace(prediction, bound=prediction.cut(plan, numbers.rows))
        arms = residuals_by_arm(records, prediction.taken_off, prediction.fitted(numbers.rows))
        contrast = release(gate, plan, arms, declared=study.treated_share, centre=ARMS)
        facts = facts_of(study, question, ARMS, contrast)
        facts["releases"] = (*_model_releases(pure), *facts["releases"])
        facts["method"] = Estimator.ADJUSTED_CONTRAST if prediction.used else Estimator.UNEXPLAINED_CONTRAST
        facts["details"] |= {
            "adjusted": prediction.used,
            "features": features.size,
            "model_budget_share": float(shares.part),
            "explained_variance": _explained(prediction),
        }
        return facts

    pages = (
        _ADJUSTED_PAGES
        if shares.form == "gram"
        else (*_ADJUSTED_PAGES, "rows/moments/orthogonal_score.proof.md")
    )
    return Prepared(
        question=question,
        plan=plan,
        estimate=estimate,
        # The last page is that of what joins pure and Gaussian draws.
        pages=pages if pure else (*pages, "accounting/filters.proof.md"),
        mechanisms=("ball" if pure else "gaussian", CENTRES_MECHANISM, question.mechanism),
    )


def _model_releases(pure: bool) -> tuple[ReleaseRow, ...]:
    """Return what is released for the model, with the noise of each."""
    if not pure:
        return tuple((quantity, Noise.GAUSSIAN) for quantity in _MODEL_QUANTITIES.values())
    noise = dict.fromkeys(_MODEL_QUANTITIES, Noise.BALL) | {"norms": Noise.LAPLACE}
    return tuple((quantity, noise[name]) for name, quantity in _MODEL_QUANTITIES.items())


def _explained(prediction: Prediction) -> float:
    """Return the part of the outcome's variance that the prediction explains, about."""
    if not prediction.used:
        return 0.0
    return min((prediction.sd / prediction.outcome_sd) ** 2, 1.0)
