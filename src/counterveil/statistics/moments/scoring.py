"""From rows to cells: which releases a form needs, what they pay, and the score that comes out of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt

import numpy as np

from counterveil.data import Carrier, Study
from counterveil.data.features import feature_map
from counterveil.numerics.products import FeatureMap
from counterveil.numerics.public_choices import LEAST_SHARE
from counterveil.numerics.shrinkage import denoised
from counterveil.privacy import Budget
from counterveil.results.question import Question
from counterveil.session import Gate, Kind, Plan
from counterveil.settings import Groups
from counterveil.statistics.histogram import COUNTS_L1, COUNTS_L2
from counterveil.statistics.moments.doubly_robust_models import (
    Nuisances,
    first_models,
    refined,
    residual_clip,
    scaling_of,
)
from counterveil.statistics.moments.doubly_robust_plan import Design, Split, split
from counterveil.statistics.moments.doubly_robust_releases import (
    release_gram,
    release_moments,
    release_residuals,
)
from counterveil.statistics.moments.doubly_robust_run import standard_rows
from counterveil.statistics.moments.records import Records
from counterveil.statistics.moments.row_scores import AdjustedScore, ArmScore, PlainScore, Score
from counterveil.statistics.moments.score_cells import (
    RESOLVED,
    SUM_NOISE,
    ArmPlaces,
    Cells,
    Clip,
    Placing,
    cell_terms,
    chosen_clip,
    clip_of_few,
    clip_without_histogram,
    release_cells,
    release_histogram,
    whole_range,
    within_range,
)

PAGE = "statistics/moments/group_scores.proof.md"
_MODEL_PAGES = (
    "statistics/moments/record_moments.proof.md",
    "statistics/histogram.proof.md",
    "statistics/moments/free_gram.proof.md",
    "statistics/moments/orthogonal_score.proof.md",
)
# Parts of the budget: mean outcome, and with the share treated where scores need one that no design declares; histogram
# of scores; models of treatment and outcome; histogram of a ranking. An error of the share is in all scores.
_CENTRE, _SHARE = Fraction(3, 100), Fraction(15, 100)
_HISTOGRAM, _MODELS = Fraction(4, 100), Fraction(35, 100)
_RANKS = Fraction(5, 100)
# Of a histogram of outcomes, where the usual part does not show where they end.
_LARGE_HISTOGRAM = Fraction(10, 100)
# Squared length of the mean of a group's standardised rows, the constant included.
_LENGTH = 3.0
# Effects are supposed to differ along so many directions of the covariates, out of all of them.
_DIRECTIONS = 1


@dataclass(frozen=True, slots=True)
class Scoring:
    """A form, its public numbers and its plan; `run` is called once inside the gate."""

    form: str
    plan: Plan
    study: Study
    source: Carrier
    settings: Groups
    features: FeatureMap
    design: Design
    split: Split | None

    @property
    def pure(self) -> bool:
        """Whether the guarantee is pure."""
        return self.design.pure

    @property
    def pages(self) -> tuple[str, ...]:
        """The proofs of what is released, and of the noise."""
        mechanisms = ("mechanisms/laplace.proof.md", "mechanisms/ball.proof.md")
        own = (PAGE, *_MODEL_PAGES) if self.form == "adjusted" else (PAGE, _MODEL_PAGES[0])
        return (*own, *(mechanisms if self.pure else ("mechanisms/gaussian.proof.md",)))

    @property
    def has_histogram(self) -> bool:
        """Whether a histogram of the scores is bought."""
        return self._released("histogram")

    def _released(self, name: str) -> bool:
        return any(name == one for one, _ in self.plan.amounts)

    def unit(self) -> float:
        """Return the noise of a sum of scores clipped at one; draws nothing."""
        terms = cell_terms(self.form == "adjusted", self.pure)
        if self.pure:
            return SUM_NOISE * sqrt(2.0) * float(terms.absolute / self.plan.amount("cells", Kind.CELLS))
        return SUM_NOISE * sqrt(self.plan.coordinate_noise("cells", terms.euclidean).variance)

    def run(self, gate: Gate, placing: Placing, cells: int, one_mean: bool = False) -> tuple[Cells, Score]:
        """Return the released cells and the score that they hold; everything in them was released.

        With `one_mean` the clip is chosen for means over everybody rather than over a cell.
        """
        records = Records(self.source, self.features)
        score = self._score(gate, records)
        count = cells
        if self.form == "arms":
            count, placing = 2 * cells, ArmPlaces(placing)
        clip = self._clip(gate, records, score, 1 if one_mean else count)
        return release_cells(gate, records, score, placing, count, clip, self.pure), score

    def _clip(self, gate: Gate, records: Records, score: Score, cells: int) -> Clip:
        if self.settings.clip is not None:
            low, high = self.study.outcome_range
            return Clip(0.0, float(self.settings.clip / float(high - low) * 2))
        histogram = release_histogram(gate, records, score, self.pure) if self.has_histogram else None
        rows, unit = self.source.rows, self.unit()
        if isinstance(score, ArmScore):
            if histogram is None or score.crowded:
                return whole_range(score)
            return within_range(chosen_clip(*histogram, rows, cells, unit), score)
        if score.crowded and isinstance(score, PlainScore):
            # Those few who carry the outcome are hidden by the noise of a histogram of scores.
            return Clip(0.0, score.reach)
        if histogram is None:
            without = clip_of_few if score.crowded else clip_without_histogram
            return without(score, rows, cells, unit)
        return chosen_clip(*histogram, rows, cells, unit, score.extra, score.part_reached)

    def _score(self, gate: Gate, records: Records) -> Score:
        if self.split is not None:
            return _adjusted(gate, records, self.design, self.split, self.settings, self.study.treated_share)
        if self.form == "arms" and not self._released("centre"):
            return ArmScore()
        moments = release_moments(gate, records, 0)
        mean = float(np.clip(moments.outcome, -1.0, 1.0))
        square = float(np.clip(moments.outcome_square, 0.0, 1.0))
        if self.form == "arms":
            return ArmScore(mean, square, offset=mean)
        declared = self.study.treated_share
        share = (1 + moments.treatment) / 2 if declared is None else float(declared)
        return PlainScore(
            float(np.clip(share, float(LEAST_SHARE), 1 - float(LEAST_SHARE))),
            mean,
            moments.sd / 2 if declared is None else 0.0,
            square,
        )


def scoring(study: Study, source: Carrier, question: Question, ranks: bool = False) -> Scoring:
    """Return the form with its plan, from public numbers alone; `ranks` buys a histogram of a ranking as well.

    The question's method is "scores", "arms" or "adjusted"; its settings are `Groups`, or None for the usual ones.
    """
    form, budget, mechanism = question.method, question.budget, question.mechanism
    settings = question.settings or Groups()
    features = feature_map(study, settings.degree) if form == "adjusted" else FeatureMap(())
    design = Design(source.rows, features.size, budget, mechanism)
    histogram = (
        Fraction(0) if settings.clip is not None else _histogram_share(form, source.rows, budget, mechanism)
    )
    models = split(design) if form == "adjusted" else None
    shares: dict[str, Fraction] = {"histogram": histogram, "ranks": _RANKS if ranks else Fraction(0)}
    if models is None:
        # Sums by arm need no centre where the whole range is taken.
        whole = form == "arms" and settings.clip is None and not histogram
        share = _SHARE if form == "scores" and study.treated_share is None else _CENTRE
        shares["centre"] = Fraction(0) if whole else share
    else:
        shares |= _model_shares(models)
    shares["cells"] = 1 - sum(shares.values(), Fraction(0))
    kinds = dict.fromkeys(shares, Kind.VECTOR)
    if design.pure:
        kinds |= {name: Kind.CELLS for name in ("histogram", "ranks", "cells", "norms") if name in shares}
    plan = Plan.split(budget, shares, mechanism, kinds)
    return Scoring(form, plan, study, source, settings, features, design, models)


def _histogram_share(form: str, rows: int, budget: Budget, mechanism: str) -> Fraction:
    """Return the share of a histogram of scores: the usual one where it resolves them, else none.

    Sums by arm lose little to a larger one, which finds outcomes that fill a small part of their range.
    """
    for share in (_HISTOGRAM, _LARGE_HISTOGRAM) if form == "arms" else (_HISTOGRAM,):
        plan = Plan.split(budget, {"histogram": share, "rest": 1 - share}, mechanism)
        amount = float(plan.amount("histogram"))
        sd = float(COUNTS_L2) / amount if mechanism == "gaussian" else sqrt(2.0) * float(COUNTS_L1) / amount
        if sd <= RESOLVED * rows:
            return share
    return Fraction(0)


def _model_shares(models: Split) -> dict[str, Fraction]:
    """Return the shares of the models' releases, in the proportions that suit an effect on everyone."""
    kept = {name: share for name, share in models.shares if name not in ("first_pass", "score")}
    return {name: _MODELS * share / sum(kept.values()) for name, share in kept.items()}


def _adjusted(
    gate: Gate,
    records: Records,
    design: Design,
    models: Split,
    settings: Groups,
    declared: Fraction | None,
) -> AdjustedScore:
    """Return the score of models that are fitted to noisy moments: centre, lengths, Gram, residuals."""
    moments, standard = standard_rows(gate, records, design, None)
    scaling = scaling_of(moments, 1 + standard.squared_length, models.treatment, models.outcome)
    second = release_gram(gate, records, standard, scaling)
    assert second.matrix is not None
    nuisances = first_models(second, scaling, denoised(second.matrix, second.entry_sd))
    for place in range(models.residual_passes):
        name = f"residual {place + 1}"
        clip = residual_clip(nuisances)
        nuisances = refined(
            nuisances, release_residuals(gate, name, records, standard, nuisances.models, clip)
        )
    if declared is not None:
        nuisances = _known_share(nuisances, float(declared))
    return AdjustedScore(
        standard,
        nuisances.models,
        settings.least_propensity,
        residual_bound=residual_clip(nuisances),
        residual_variance=nuisances.residual_variance,
        doubt=_LENGTH * nuisances.treatment_variance,
        extra=nuisances.treatment_variance * nuisances.product / nuisances.variance**2
        + _wrong_weights(nuisances),
        bias=nuisances.bias / nuisances.variance,
        crowded=nuisances.least_clip > 0,
    )


def _wrong_weights(nuisances: Nuisances) -> float:
    """Return the variance that a wrong propensity adds through the weights, where effects differ in a group.

    A weight is wrong by the part (1 - 2e)/(e(1-e)) of the propensity's error; it multiplies how far effects
    lie from the one in common, whose mean square is at most the residual variance over e(1-e).
    """
    models = nuisances.models
    e = models.share
    varies = float(models.shrunk @ nuisances.gram.matrix @ models.shrunk)
    slope = ((1 - 2 * e) ** 2 + 4 * varies) / nuisances.variance**2
    error = min(1.0, _DIRECTIONS / len(models.shrunk)) * nuisances.gamma_error
    return error * slope * nuisances.residual_variance / nuisances.variance


def _known_share(nuisances: Nuisances, share: float) -> Nuisances:
    """Return the models with the propensity that the design declares."""
    models, none = nuisances.models, np.zeros_like(nuisances.models.treatment)
    known = replace(
        models,
        share=share,
        # Residuals are taken around effect times (t - share): what the share moves goes to the mean.
        mean=models.mean + models.effect * (share - models.share),
        treatment=none,
        shrunk=none,
    )
    return replace(
        nuisances,
        models=known,
        treatment_sd=0.0,
        gamma=0.0,
        gamma_error=0.0,
        noise_bias=0.0,
        raised_bias=0.0,
        variance=share * (1 - share),
    )
