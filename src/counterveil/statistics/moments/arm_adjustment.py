"""The effect on everyone, the treated or the untreated where everything about a person is private, with an interval.

Second moments of covariates and outcome are released arm by arm, which costs no more than one matrix for all; lines
of both arms are refined on moments of their residuals; weights balance each arm against the people asked about; bends
of lines and weights along the index of outcomes are measured and added; the effect is the mean of a doubly robust
score, released with its square.

Lineage: augmented inverse weighting (Robins, Rotnitzky and Zhao 1994) with balancing weights (Chernozhukov, Newey and
Singh 2022); private regression from noisy second moments (Dwork, Talwar, Thakurta and Zhang 2014).
"""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

from counterveil.data.features import feature_ladder, feature_map
from counterveil.inference import Uncertainty
from counterveil.numerics.products import FeatureMap
from counterveil.privacy import Estimand
from counterveil.privacy.caveats import Caveat, Curvature, LinearScores
from counterveil.results.curvature import HIDDEN_BIAS, UNDETECTED_BIAS
from counterveil.results.question import Question
from counterveil.results.result import Result
from counterveil.session import Gate, Session
from counterveil.settings import DoublyRobust
from counterveil.statistics.moments.arm_plan import ArmDesign, arms_affordable, expected_width, shortest
from counterveil.statistics.moments.arm_run import ArmEffect, arm_effect
from counterveil.statistics.moments.doubly_robust_plan import Design, affordable, overlap_width
from counterveil.statistics.moments.records import Records

# Bends along an index are followed where this part of it is known or more, and where noise hides no more of them than
# this: above it, bent indices of `experiments/causal` were covered in .5 to .8 of the draws, below it in .9 and more.
_KNOWN, _DOUBT = 0.7, 0.06
PAGES = (
    "statistics/moments/arm_grams.proof.md",
    "statistics/moments/arm_statistics.proof.md",
    "statistics/moments/orthogonal_score.proof.md",
    "statistics/histogram.proof.md",
)
_WORDS = {
    "centre": "means and mean squares of numbers, and the share treated",
    "features": "means and mean squares of the features, numbers rescaled",
    "place 1": "histogram of the outcome over its range",
    "place 2": "histogram of the outcome where the first is full",
    "norms": "histogram of the rows' lengths",
    "gram": "second moments of covariates and outcome in each arm",
    "bends": "how weights and residuals of each arm bend along an index",
    "sizes": "histogram of the sizes of the scores",
    "score": "mean and mean square of the doubly robust score",
}


def arm_design(session: Session, question: Question, settings: DoublyRobust) -> tuple[FeatureMap, Design]:
    """Return the features and the public numbers of the shortest interval that is expected.

    Pure noise is compared too where the mechanism was left to the library: it keeps the guarantee for every delta.
    """
    study = session.study
    ladder = (
        feature_ladder(study) if settings.degree == "auto" else (feature_map(study, int(settings.degree)),)
    )
    mechanisms = dict.fromkeys((question.mechanism, *(["staircase"] if question.open_noise else [])))
    judged = (
        (affordable, overlap_width)
        if question.estimand is Estimand.ATO
        else (arms_affordable, expected_width)
    )
    found = shortest(ladder, session.batches.rows, question.budget, tuple(mechanisms), *judged)
    return found.features, found.design


def arm_adjusted(
    session: Session, question: Question, features: FeatureMap, design: Design, room: float
) -> Result:
    """Return the adjusted private effect on the people that the estimand names."""
    # Outcomes from 0 to 1 are events, which may be so rare that noise hides them.
    low, high = session.study.outcome_range
    chain = ArmDesign(design, searched=low != 0 or high != 1)
    question = replace(question, mechanism=design.mechanism)

    def compute(gate: Gate) -> dict[str, object]:
        effect = arm_effect(gate, Records(session.batches, features), chain, question.estimand, room)
        return _result(session, question, chain, effect, _assumed(session, features, effect)).stored()

    return Result.from_dict(session.run(question.request(chain.plan(), session.study), compute))


def linear_scores(features: FeatureMap, *, inverse: bool, curvature: Curvature | None = None) -> LinearScores:
    """Return that a score or the outcome regression is linear in these features."""
    squares, products = any(i == j for i, j in features.pairs), any(i != j for i, j in features.pairs)
    return LinearScores(inverse, squares, products, curvature)


def _assumed(session: Session, features: FeatureMap, effect: ArmEffect) -> LinearScores | None:
    """Return what must be true for the interval to cover, None in a trial, where weights are right."""
    if session.study.randomised is True:
        return None
    seen = effect.known >= _KNOWN and effect.doubt <= _DOUBT
    curvature = Curvature.FOLLOWED if seen else Curvature.UNDETECTED
    return linear_scores(features, inverse=True, curvature=curvature)


def _result(
    session: Session, question: Question, chain: ArmDesign, effect: ArmEffect, assumes: LinearScores | None
) -> Result:
    study = session.study
    low, high = study.outcome_range
    unit = float(high - low) / 2
    sampling, noise, product = (part * unit**2 for part in (effect.sampling, effect.noise, effect.product))
    # Pure noise is a coordinate of the ball of mean and mean square.
    extra, ball, dimensions = (product, noise, 2) if chain.pure else (noise + product, 0.0, 0)
    return Result(
        estimate=effect.value * unit,
        uncertainty=Uncertainty(None, sampling, sampling, None, extra, effect.bias * unit, ball, dimensions),
        guarantee=question.guarantee(
            session, PAGES, mechanisms=("ball", "laplace") if chain.pure else ("gaussian",)
        ),
        method="doubly robust with moments by arm",
        **question.effect_terms(study),
        releases=_releases(chain),
        not_covered=(
            Caveat.UNDECLARED_COVARIATES,
            Caveat.NONLINEARITY,
            Caveat.CLAMPING,
            Caveat.CLIPPED_SCORES,
            Caveat.COVERAGE_MEASURED,
        ),
        assumes=assumes,
        details={
            "adjusted": True,
            "rows": chain.design.rows,
            "features": chain.design.features,
            "mechanism": chain.design.drawn,
            "share_treated": effect.share,
            "residual_passes": chain.passes,
            "se_sampling": sqrt(effect.sampling) * unit,
            "se_score_noise": sqrt(effect.noise) * unit,
            "se_models": sqrt(effect.product) * unit,
            "model_bias_bound": effect.bias * unit,
            "bend_bias_bound": effect.bends * unit,
            HIDDEN_BIAS: effect.hidden * unit,
            "index_known": effect.known,
            "bend_doubt": effect.doubt,
            # A trial has no curvature to doubt, and no second interval.
            **({} if assumes is None else {UNDETECTED_BIAS: effect.undetected * unit}),
        },
    )


def _releases(chain: ArmDesign) -> tuple[tuple[str, str], ...]:
    noise = "l2-ball noise" if chain.pure else "Gaussian noise"
    cells = "Laplace noise" if chain.pure else noise
    return tuple(
        (
            _WORDS.get(name, "moments of the residuals in each arm"),
            f"{float(share):.3g} of the budget; {cells if name in chain.histograms else noise}",
        )
        for name, share in chain.shares.items()
    )
