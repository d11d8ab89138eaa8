"""Effects of public cells of records: which releases a form of scores needs, what they pay and make.

The forms are the plain score of a trial ("scores"), outcomes of the arms of every cell ("arms") and the
doubly robust score of two models ("adjusted"). A form releases what its score needs (shares, means, models),
a histogram of scores for their clip, then number, sum and squares of clipped scores in every cell.

Effects are in units of the outcome. Each row is in one cell and its score is clipped to [-1, 1] after
scaling, so that a replaced row changes the sums of two cells at most. Proofs:
`rows/moments/group_scores.proof.md`; releases before the scores `rows/moments/record_moments.proof.md`, and
of models `rows/histogram.proof.md`, `rows/moments/free_gram.proof.md` and
`rows/moments/orthogonal_score.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

import numpy as np

from counterveil.data import Study
from counterveil.data.features import feature_map
from counterveil.estimators.moments.adjustment_budget import ChainSplit, Design, split
from counterveil.estimators.moments.cell_clip import (
    RESOLVED,
    CellClip,
    chosen_clip,
    clip_without_histogram,
    release_histogram,
    within_range,
)
from counterveil.estimators.moments.cell_tallies import SUM_NOISE, Tallies, release_cells
from counterveil.estimators.moments.fitted_score import fitted_score
from counterveil.estimators.moments.group_score import MeanScore, PlainScore, Score
from counterveil.numerics.products import FeatureMap
from counterveil.numerics.public_choices import LEAST_SHARE
from counterveil.privacy import Budget
from counterveil.results.question import Question
from counterveil.rows.counts import COUNTS_L1, COUNTS_L2
from counterveil.rows.moments.cell_sums import cell_terms
from counterveil.rows.moments.feature_moments import release_moments
from counterveil.rows.moments.placing import ArmPlaces, Placing
from counterveil.rows.moments.sensitivity import SQUARE_WEIGHT
from counterveil.rows.public import PublicData
from counterveil.rows.records import Records
from counterveil.session import Gate, Kind, Plan
from counterveil.settings import Groups

PAGE = "rows/moments/group_scores.proof.md"
_MODEL_PAGES = (
    "rows/moments/record_moments.proof.md",
    "rows/histogram.proof.md",
    "rows/moments/free_gram.proof.md",
    "rows/moments/orthogonal_score.proof.md",
)
# Parts of the budget: mean outcome, and with the share treated where scores need one that no design declares; an error
# of the share is in all scores.
_CENTRE = Fraction(3, 100)
_SHARE = Fraction(15, 100)
# Histogram of scores; of outcomes, where the usual part does not show where they end.
_HISTOGRAM = Fraction(4, 100)
_LARGE_HISTOGRAM = Fraction(10, 100)
# Models of treatment and outcome.
_MODELS = Fraction(35, 100)
# Histogram of a ranking.
_RANKS = Fraction(5, 100)


@dataclass(frozen=True, slots=True)
class Scoring:
    """How effects of cells of records are found: a form of scores, its public numbers and its plan.

    Attributes
    ----------
    form : str
        "scores" of a trial, "arms" of every cell, or "adjusted" for covariates.
    plan : Plan
        Names of releases and what each pays.
    study : Study
        Roles and ranges of columns.
    settings : Groups
        Where scores are clipped, if that was asked.
    features : FeatureMap
        Of covariates; none where nothing is adjusted for.
    design : Design
        Numbers of rows and features, budget and mechanism.
    split : ChainSplit, optional
        How the models' part of the budget is divided.
    """

    form: str
    plan: Plan
    study: Study
    settings: Groups
    features: FeatureMap
    design: Design
    split: ChainSplit | None

    @property
    def pure(self) -> bool:
        """Whether the guarantee is pure."""
        return self.design.pure

    @property
    def rows(self) -> int:
        """Number of rows, public."""
        return self.design.rows

    @property
    def pages(self) -> tuple[str, ...]:
        """The proofs of what is released, and of the noise."""
        mechanisms = ("mechanisms/laplace.proof.md", "mechanisms/ball.proof.md")
        releases = (PAGE, *_MODEL_PAGES) if self.form == "adjusted" else (PAGE, _MODEL_PAGES[0])
        return (*releases, *(mechanisms if self.pure else ("mechanisms/gaussian.proof.md",)))

    def _releases(self, name: str) -> bool:
        return name in dict(self.plan.amounts)

    def unit(self) -> float:
        """Return the noise of a sum of scores clipped at one; draws nothing."""
        terms = cell_terms(self.form == "adjusted", self.pure)
        if self.pure:
            return SUM_NOISE * sqrt(2.0) * float(terms.absolute / self.plan.amount("cells", Kind.CELLS))
        return SUM_NOISE * sqrt(self.plan.coordinate_noise("cells", terms.euclidean).variance)

    def release(
        self, gate: Gate, placing: Placing, cells: int, *, one_mean: bool = False
    ) -> tuple[Tallies, Score]:
        """Return the released cells and the score that they hold; everything in them was released.

        With `one_mean` the clip is chosen for means over everybody rather than over a cell.
        """
        records = Records.at(gate, self.features)
        score = self._score(gate, records)
        count = cells
        if self.form == "arms":
            count = 2 * cells
            placing = ArmPlaces(placing)
        clip = self._clip(gate, records, score, 1 if one_mean else count)
        return release_cells(
            gate, records, score, placing=placing, cells=count, clip=clip, pure=self.pure
        ), score

    def _clip(self, gate: Gate, records: Records, score: Score, cells: int) -> CellClip:
        if self.settings.clip is not None:
            low, high = self.study.outcome_range
            return CellClip(0.0, float(self.settings.clip / float(high - low) * 2))
        histogram = (
            release_histogram(gate, records, score, self.pure) if self._releases("histogram") else None
        )
        unit = self.unit()
        if isinstance(score, MeanScore):
            if histogram is None or score.heavy_tailed:
                return CellClip(-score.mean, 1.0)  # cuts nothing off
            return within_range(chosen_clip(histogram, score, rows=self.rows, cells=cells, unit=unit), score)
        if score.heavy_tailed and isinstance(score, PlainScore):
            # Those few who carry the outcome are hidden by the noise of a histogram of scores.
            return CellClip(0.0, score.largest_score)
        if histogram is None:
            return clip_without_histogram(score, rows=self.rows, cells=cells, unit=unit)
        return chosen_clip(histogram, score, rows=self.rows, cells=cells, unit=unit)

    def _score(self, gate: Gate, records: Records) -> Score:
        if self.split is not None:
            return fitted_score(
                gate, records, self.design, models=self.split, declared=self.study.treated_share
            )
        if self.form == "arms" and not self._releases("centre"):
            return MeanScore()
        moments = release_moments(gate, records, 0)
        mean = float(np.clip(moments.outcome, -1.0, 1.0))
        square = float(np.clip(moments.outcome_square, 0.0, 1.0))
        square_sd = moments.sd / float(SQUARE_WEIGHT)
        if self.form == "arms":
            return MeanScore(mean, square, square_sd, mean)
        declared = self.study.treated_share
        share = (1 + moments.treatment) / 2 if declared is None else float(declared)
        return PlainScore(
            share=float(np.clip(share, float(LEAST_SHARE), 1 - float(LEAST_SHARE))),
            mean=mean,
            share_sd=moments.sd / 2 if declared is None else 0.0,
            square=square,
            square_sd=square_sd,
        )


def scoring(public: PublicData, question: Question, *, ranks: bool = False) -> Scoring:
    """Return the form with its plan, from public numbers alone; `ranks` buys a histogram of a ranking as well.

    The question's method is "scores", "arms" or "adjusted"; its settings are `Groups`, or None for the usual ones.
    """
    study = public.study
    form = question.method
    budget = question.budget
    mechanism = question.mechanism
    settings = question.settings or Groups()
    features = feature_map(study, 1) if form == "adjusted" else FeatureMap(())
    design = Design(public.rows, features.size, budget, mechanism)
    histogram = (
        Fraction(0) if settings.clip is not None else _histogram_share(form, public.rows, budget, mechanism)
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
    return Scoring(
        form=form, plan=plan, study=study, settings=settings, features=features, design=design, split=models
    )


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


def _model_shares(models: ChainSplit) -> dict[str, Fraction]:
    """Return the shares of the models' releases, in the proportions that suit an effect on everyone."""
    without_score = {name: share for name, share in models.shares if name != "score"}
    total = sum(without_score.values())
    return {name: _MODELS * share / total for name, share in without_score.items()}
