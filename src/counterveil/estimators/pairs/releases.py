"""The three releases behind every number about private pairs (treatment, outcome), and what is made of them.

1. The place of outcomes, from two histograms (none for outcomes from 0 to 1): `rows/histogram.proof.md`.
2. One vector for propensities and both arms' mean outcomes: `rows/pairs/pair_moments.proof.md`.
3. Sums of an orthogonal score and of its squares: `rows/pairs/pair_scores.proof.md`.

With clip C and middle m of scores v (C v_i + m is a row's score in halves of the range), D the sum of tilts,
n the rows, h half of the declared range in units of the outcome, and `start` the effect that the models alone
say,

    estimate = start h + (C sum v + n m) h / D,
    variance = f (C^2 sum v^2 + 2 m C sum v + n m^2) (h / D)^2,

f being by how much rows vary more than around models that were fitted to them. In: public covariates, a plan
(which release pays which part of the budget), and at the gate, which adds the noise, the private rows. Out:
an effect in units of the outcome, or a mean measured from the middle of the range. Beside sampling and noise
the error has products of both models' errors, what the clip takes off, and what capped weights do not
balance. All that follows the releases is post-processing; factors such as `ALIGNED` set lengths of intervals,
not privacy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

import numpy as np

from counterveil.data import Study
from counterveil.estimators.outcome_place import Spread, find_place
from counterveil.estimators.pairs.budget import Choice, known_propensities, searched
from counterveil.estimators.pairs.features import PairFeatures
from counterveil.estimators.pairs.limits import MOST_LEFT
from counterveil.estimators.pairs.models import Models, ReleasedSums, fit_models
from counterveil.estimators.pairs.scores import Scores, Target, best_scores
from counterveil.inference.uncertainty import Uncertainty
from counterveil.numerics.arrays import Floats
from counterveil.privacy.caveats import OutcomesAtEnds
from counterveil.rows.outcome_histograms import OutcomeHistograms
from counterveil.rows.outcome_window import WHOLE
from counterveil.rows.pairs.moments import PairSums
from counterveil.rows.pairs.scores import WHOLE_SCORES, Places, RowScores, ScoreForm, ScoreSums
from counterveil.rows.public import PublicRows
from counterveil.session import Gate, Kind, Plan

# Products of both models' errors count so often: confounding aligns them.
ALIGNED = 2.0
# The models' check rejects where what shrinkage left of an effect exceeds so many of its standard deviations (one in
# ten, on both sides).
REJECTS = 1.645
# The same in either of two means that are compared (one in twenty).
_REJECTS_MEAN = 1.96


@dataclass(frozen=True, slots=True, eq=False)
class PairEffect:
    """A released number and its uncertainty, in units of the outcome.

    Attributes
    ----------
    estimate : float
        An effect, or a mean around the middle of the range.
    uncertainty : Uncertainty
        Its error, part by part.
    details : dict
        Parts of the error, and the check of the models.
    ends : OutcomesAtEnds, optional
        How many outcomes crowd at the ends of the range, where the place was searched.
    """

    estimate: float
    uncertainty: Uncertainty
    details: dict[str, float | str]
    ends: OutcomesAtEnds | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ScoreTarget:
    """One number that scores tell: of which rows and which outcome, how rows weigh, and the models of them.

    Attributes
    ----------
    study : Study
        The study with the one outcome that the number is about.
    spread : Spread
        Where its outcomes lie.
    places : ndarray of int or slice
        The rows, chosen by what is public.
    target : Target
        How they weigh.
    models : Models
        Models of all rows.
    form : ScoreForm
        What is released of the scores.
    arm : int, optional
        Arm whose rows count as treated, by default all but the reference.
    outcome : int
        Number of the outcome, 0 for the primary one.
    """

    study: Study
    spread: Spread
    places: Places
    target: Target
    models: Models
    form: ScoreForm = WHOLE_SCORES
    arm: int | None = None
    outcome: int = 0

    def scores(self, features: PairFeatures, plan: Plan) -> Scores:
        """Return the scores of least expected error at the noise that the plan pays for."""
        noise = plan.cells_noise("score", self.form.l1).variance
        return best_scores(
            features.at(self.places),
            self.models.at(self.places),
            spread=self.spread,
            target=self.target,
            noise=noise,
        )


def release_spread(
    gate: Gate, choice: Choice, study: Study, people: int, *, outcome: int = 0, which: str = ""
) -> Spread:
    """Return where the outcomes of so many people lie: released where it is searched, the whole range for events."""
    if not searched(study):
        return Spread(WHOLE, 0.0)
    pure = Kind.NORMAL not in dict(choice.plan.kinds).values()
    return find_place(gate, OutcomeHistograms(pure, which, outcome=outcome), people)


def release_models(
    gate: Gate, public: PublicRows, choice: Choice, studies: Sequence[Study]
) -> list[tuple[Models, Spread]]:
    """Return models of treatment and of every outcome, and where it lies: places, then one vector.

    `studies` have one outcome each, in the order of the rows' outcomes.
    """
    count = len(studies)
    spreads = [
        release_spread(
            gate, choice, study, public.rows, outcome=number, which=f" {number + 1}" if count > 1 else ""
        )
        for number, study in enumerate(studies)
    ]
    by_design = known_propensities(public)
    features = choice.features
    outcome_places = tuple(spread.place for spread in spreads)
    released = PairSums(features, outcome_places, propensity_known=by_design is not None).release(
        gate, "models"
    )
    columns = released.floats().reshape(-1, len(features.scale))
    models = []
    for spread, arms in zip(spreads, np.split(columns[by_design is None :], count), strict=True):
        values = arms if by_design is not None else np.vstack([columns[:1], arms])
        sums = ReleasedSums.of(
            values, released.variance, features=features, by_design=by_design, outcomes=count
        )
        constant = public.study.randomised is True
        models.append((fit_models(features, sums, spread, by_design=by_design, constant=constant), spread))
    return models


def release_scores(gate: Gate, choice: Choice, targets: Sequence[ScoreTarget]) -> list[PairEffect]:
    """Return numbers of which no row moves two, or those of all outcomes, further than the forms say; one release."""
    scores = [target.scores(choice.features, choice.plan) for target in targets]
    sums = ScoreSums(
        tuple(
            RowScores(
                lines=lines,
                form=target.form,
                places=target.places,
                outcome=target.outcome,
                arm=target.arm,
            )
            for lines, target in zip(scores, targets, strict=True)
        )
    )
    released = sums.release(gate, "score")
    return [
        effect_of(choice, target, lines, values)
        for target, lines, values in zip(targets, scores, released, strict=True)
    ]


def effect_of(choice: Choice, score_target: ScoreTarget, scores: Scores, released: Floats) -> PairEffect:
    """Return the number of the released sums of scores and of their squares, with every part of its error."""
    plan = choice.plan
    target = score_target.target
    features = choice.features.at(score_target.places)
    models = score_target.models.at(score_target.places)
    low, high = score_target.study.outcome_range
    half_range = float(high - low) / 2
    fitted = score_target.models.fitted(target.arm)
    square_weight = score_target.form.square_weight
    l1 = score_target.form.l1
    clip = scores.clip
    middle = scores.middle
    n = len(features.z)
    unit = half_range / scores.size
    total = float(released[0])
    squares = float(released[1]) / float(square_weight)
    estimate = scores.start * half_range + (clip * total + n * middle) * unit
    variance = fitted * (clip**2 * squares + 2 * middle * clip * total + n * middle**2) * unit**2
    second, difference, difference_sd = models.products(target.errors, features)
    models_variance = ALIGNED * second * unit**2
    model_difference = difference * unit
    model_difference_sd = difference_sd * unit
    rejects = abs(model_difference) > (REJECTS if target.arm is None else _REJECTS_MEAN) * model_difference_sd
    likely = squares + sqrt(plan.cells_noise("score", l1).variance) / float(square_weight)
    lost = (scores.lost(likely) * unit) ** 2
    capped = scores.capped * unit**2
    # The variance holds the noise of both sums: that of squares, and that of scores around their middle.
    of_variance = fitted * clip * sqrt((clip / float(square_weight)) ** 2 + 4 * middle**2) * unit**2
    noise = plan.cells_noise("score", l1 * Fraction(clip * unit))
    variance_noise = plan.cells_noise("score", l1 * Fraction(of_variance))
    cap = fitted * n * ((clip + abs(middle)) * unit) ** 2
    bias = min(abs(model_difference), MOST_LEFT * models.sd * half_range) if rejects else 0.0
    uncertainty = Uncertainty(
        noise=noise,
        variance=variance,
        variance_cap=cap,
        variance_noise=variance_noise,
        extra=models_variance + lost + capped,
        bias=bias,
    )
    details: dict[str, float | str] = {
        "se_models": sqrt(models_variance),
        "se_clipping": sqrt(lost),
        "se_capped_weights": sqrt(capped),
        "models_differ": model_difference,
        "models_differ_se": model_difference_sd,
        "models_differ_rejects": rejects,
    }
    return PairEffect(estimate, uncertainty, details)
