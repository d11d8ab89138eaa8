"""The effect as a kernel regression plus a Gaussian process, as published (Theorem 2, Algorithms 1 and 2).

Its privacy claim is refuted: the sensitivity has the exponent q of the bandwidth's volume where q/2 is right, which
the unexplained factor 4 hides for small volumes only; rows of the nuisances are not counted; L is not the
Lipschitz constant of the loss. The scale is public, and for every number of queries one path of noise is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from counterveil.numerics.public_choices import two_parts
from counterveil.privacy import Proof
from counterveil.published.cate_kernel import (
    EXTRA_VARIANCE,
    Kernel,
    batch_factor,
    fitted_kernel,
    literal_penalty,
    path_factor,
    published_scale,
)
from counterveil.published.cate_learners import require_learners
from counterveil.published.cate_losses import FeatureBox, Nuisances, Rows, fitted_nuisances, loss_at
from counterveil.published.cate_settings import (
    BATCH,
    PRINTED,
    KernelSettings,
    asked_queries,
    paper_answers,
    paper_plan,
    paper_request,
)
from counterveil.results.cate_answers import CateAnswers
from counterveil.results.cate_question import CateQuestion
from counterveil.session import Custody, Gate, Kind, Plan

Floats = NDArray[np.float64]

_SEED = 0
REMARK = (
    "the published claim is false: the bound of how far a record moves the function has the exponent q where q/2 is "
    "right, so that the noise is too small wherever (sqrt(2 pi) h)^(q/2) is above 4 and vanishes with many covariates; "
    "rows of the nuisances are not counted; and the largest outcome is not the Lipschitz constant of the loss. The "
    "ledger is charged the claimed epsilon and delta"
)
REMARK_PRINTED = (
    "; the iterative algorithm as printed draws every answer after the first from the answers before it alone: those "
    "are noise, not estimates"
)


@dataclass(frozen=True, slots=True)
class PublishedFunction:
    """The kernel, the published scale of a process of height one, and the lambda beside the mean loss."""

    kernel: Kernel
    scale: float
    penalty: float

    @classmethod
    def of(
        cls, box: FeatureBox, question: CateQuestion, settings: KernelSettings, rows: int
    ) -> PublishedFunction:
        """Return what the paper prints for these public numbers; `rows` is the n of the formula."""
        kernel = Kernel.normalised(settings.bandwidth, box.columns, settings.kernel)
        penalty = literal_penalty(settings.penalty, settings.penalty_meaning, rows)
        largest = max(abs(float(end)) for end in box.study.outcome_range)
        lipschitz = largest if settings.lipschitz is None else settings.lipschitz
        epsilon, delta = float(question.budget.epsilon), float(question.budget.delta)
        scale = published_scale(kernel, lipschitz, penalty, rows, epsilon, delta)
        return cls(kernel, scale * float(np.sqrt(kernel.height)), penalty)

    def effects(
        self, rows: Rows, nuisances: Nuisances, learner: str, centres: Floats | None, points: Floats
    ) -> Floats:
        """Return the non-private regression at these points."""
        loss = loss_at(nuisances, learner, rows.x, rows.treated)
        fitted = fitted_kernel(self.kernel, rows.x, loss.phi(rows.y), loss.rho, self.penalty, centres)
        return fitted(points)


def functional(custody: Custody, question: CateQuestion) -> CateAnswers:
    """Return the published function at the queries, marked as refuted."""
    settings = question.settings or KernelSettings()
    queries = asked_queries(question)
    plan = paper_plan(question)
    remark = REMARK + (REMARK_PRINTED if settings.algorithm == PRINTED else "")
    question.require_acceptance(Proof.REFUTED, remark)
    require_learners(settings.outcome, settings.propensity)
    box = FeatureBox.of(custody.study)
    points = box.points(queries.columns)

    def compute(gate: Gate) -> dict[str, object]:
        rows = box.rows(custody.table)
        parts = two_parts(len(rows), settings.first_rows(len(rows)))
        nuisances = fitted_nuisances(
            rows.part(parts[0]), settings.outcome, settings.propensity, settings.clip
        )
        form = PublishedFunction.of(box, question, settings, settings.counted_rows(len(rows)))
        centres = public_centres(box, settings.centres)
        effects = form.effects(rows.part(parts[1]), nuisances, settings.learner, centres, points)
        return paper_answers(
            custody,
            question,
            release(gate, plan, form, effects, points, settings.algorithm),
            # As printed, later answers have no noise around anything that was estimated.
            noise=float("inf")
            if settings.algorithm == PRINTED
            else form.scale * float(np.sqrt(1 + EXTRA_VARIANCE)),
            remark=remark,
            method=f"{settings.learner}-learner by kernel regression, Gaussian process noise ({settings.algorithm}), "
            "as published",
            release=f"one path of a Gaussian process, standard deviation {form.scale:.4g} at a point",
            interval_of="the fitted kernel regression: its sampling error and its bias are not in them",
        ).stored()

    return CateAnswers.from_dict(custody.run(paper_request(question, plan, custody.study, settings), compute))


def public_centres(box: FeatureBox, count: int | None) -> Floats | None:
    """Return points of the box from a fixed seed: centres from the rows would tell them. None for all rows."""
    return None if count is None else box.draw(count, _SEED)


def release(
    gate: Gate, plan: Plan, form: PublishedFunction, effects: Floats, points: Floats, algorithm: str
) -> Floats:
    """Return the answers: independent normals at the gate, in the coordinates where the process is white."""
    if algorithm == BATCH:
        factor, places = batch_factor(form.kernel, points)
    else:
        factor, places = path_factor(form.kernel, points)
    values = np.empty(len(factor))
    values[places] = effects
    white = solve_triangular(factor, values, lower=True)
    scales = np.full(len(factor), form.scale)
    if algorithm == PRINTED:
        # Only the first answer reads the data, and all later ones have the process's own scale.
        white[1:], scales[1:] = 0.0, np.sqrt(form.kernel.height)
    noisy = _with_unit_noise(gate, plan, white / scales) * scales
    return np.asarray((factor @ noisy)[places], dtype=np.float64)


def _with_unit_noise(gate: Gate, plan: Plan, values: Floats) -> Floats:
    sensitivity = plan.amount("answers", Kind.VECTOR)
    return gate.release_vector("answers", [Fraction(float(value)) for value in values], sensitivity).floats()
