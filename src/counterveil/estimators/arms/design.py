"""What arms and covariates alone decide: for each arm the coefficients of its outcomes, and public tables.

Every arm's mean estimates what everybody's mean outcome would be in that arm. Only outcomes are private, so
all of this is free, whatever else it reads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Categories, Range, Study, Table
from counterveil.estimators.arms.matched_arm import matched_coefficients
from counterveil.estimators.arms.settings import ArmsSettings
from counterveil.estimators.arms.statistics import ArmStatistic, PlainArm, WeightedArm
from counterveil.estimators.ate.covariates import Features, covariate_features
from counterveil.estimators.ate.variance_share import effect_plan
from counterveil.estimators.question import Question, causal_caveats
from counterveil.kernels.arm_weights import arm_weights
from counterveil.kernels.balancing_weights import WeightSettings
from counterveil.kernels.pairing import covariate_pairs, score_pairs
from counterveil.kernels.propensity import fit_multinomial
from counterveil.kernels.weight_features import ColumnKind, weight_features

Floats = NDArray[np.float64]

# The share of the budget that is supposed to go to variances while coefficients are chosen.
_SUPPOSED_SHARE = Fraction(1, 10)
# Scores below this make an arm's mean rest on few people.
_RARE = 0.05


@dataclass(frozen=True, slots=True)
class Design:
    """The statistics of all arms, the reference first, and what to say about them."""

    method: str
    statistics: tuple[ArmStatistic, ...]
    not_covered: tuple[str, ...]
    details: dict[str, float | str] = field(default_factory=dict)
    diagnostics: dict[str, Any] = field(default_factory=dict)


def design_of(table: Table, question: Question) -> Design:
    """Return the design of the question's method."""
    makers: dict[str, Callable[[Table, Question], Design]] = {
        "difference_in_means": _plain,
        "weighting": _weighted,
        "matching": _matched,
    }
    return makers[question.method](table, question)


def _plain(table: Table, question: Question) -> Design:
    statistics = tuple(PlainArm.of(table, code) for code in range(int(table.arm.max()) + 1))
    return Design("means of the arms", statistics, causal_caveats(table.study, question.estimand))


def _weighted(table: Table, question: Question) -> Design:
    settings = question.settings or ArmsSettings()
    features = covariate_features(table)
    scores = _scores(table, features, settings)
    columns, kinds = _raw_columns(table)
    supposed = WeightSettings(*settings.spreads(table.study))
    statistics = []
    for code in range(scores.shape[1]):
        rows = np.flatnonzero(table.arm == code)
        balanced = weight_features(columns, kinds, scores[:, code])
        weights = arm_weights(balanced, rows, noise_variance=_unit_noise(question), settings=supposed)
        # Rows alike in all that is balanced: what varies within a pair is what weighting leaves to chance.
        pairs = covariate_pairs(np.zeros(len(rows), dtype=np.intp), balanced[rows])
        statistics.append(WeightedArm.of(table, rows, weights, pairs))
    caveats = ("bias from imbalance that the weights leave (see the balance table)",)
    return _adjusted("balancing weights in each arm", table, features, scores, statistics, caveats)


def _matched(table: Table, question: Question) -> Design:
    settings = question.settings or ArmsSettings()
    features = covariate_features(table)
    scores = _scores(table, features, settings)
    statistics, limits, unmatched = [], {}, 0
    for code in range(scores.shape[1]):
        found = matched_coefficients(
            table.arm == code,
            scores[:, code],
            features.values,
            settings,
            settings.spreads(table.study),
            _unit_noise(question),
        )
        pairs = score_pairs(np.zeros(len(found.rows), dtype=np.intp), scores[found.rows, code])
        statistics.append(WeightedArm.of(table, found.rows, found.coefficients, pairs))
        limits[f"most uses of a unit of {_labels(table.study)[code]!r}"] = found.limit
        unmatched += found.unmatched
    caveats = ["bias of matching: a wrong model of the score, matches that are not exact"]
    caveats += ["the units that found no match in some arm, whose place the others take"] if unmatched else []
    design = _adjusted(
        "matching on the multinomial score", table, features, scores, statistics, tuple(caveats)
    )
    return replace(design, details={"neighbours": settings.neighbours, **limits})


def _adjusted(
    method: str,
    table: Table,
    features: Features,
    scores: Floats,
    statistics: list[WeightedArm],
    caveats: tuple[str, ...],
) -> Design:
    if table.study.randomised is not True:
        caveats = ("CONFOUNDING by anything that is not among the study's covariates", *caveats)
    labels = _labels(table.study)
    return Design(
        method,
        tuple(statistics),
        (*caveats, "clamping of outcomes to the declared range"),
        diagnostics={
            "balance": _balance(features, statistics, labels),
            "effective_size": [
                {"arm": str(label), "rows": len(one.rows), "effective": float(1 / one.form.squares)}
                for label, one in zip(labels, statistics, strict=True)
            ],
            "overlap": [
                {
                    "arm": str(label),
                    "smallest_score": float(scores[:, code].min()),
                    f"share_below_{_RARE}": float((scores[:, code] < _RARE).mean()),
                }
                for code, label in enumerate(labels)
            ],
        },
    )


def _balance(
    features: Features, statistics: list[WeightedArm], labels: tuple[object, ...]
) -> list[dict[str, Any]]:
    """Return, before and after, each arm's mean of every covariate minus everybody's, in standard deviations
    of everybody, and the ratio of the arm's variance to everybody's.
    """
    spread = (features.values**2).mean(axis=0)  # the columns have mean zero
    scale = np.where(spread > 0, spread, 1.0)
    table = []
    for label, one in zip(labels, statistics, strict=True):
        own = features.values[one.rows]
        weights = np.ldexp(one.form.units.astype(np.float64), -one.form.bits)
        shown = {}
        for when, w in (("before", np.full(len(own), 1 / len(own))), ("after", weights)):
            mean = w @ own
            shown[f"difference_{when}"] = mean / np.sqrt(scale)
            shown[f"variance_ratio_{when}"] = w @ (own - mean) ** 2 / scale
        table += [
            {"covariate": f"{name} ({label})", **{key: float(found[j]) for key, found in shown.items()}}
            for j, name in enumerate(features.names)
        ]
    return table


def _scores(table: Table, features: Features, settings: ArmsSettings) -> Floats:
    penalty = 1 / table.rows if settings.penalty is None else settings.penalty
    return fit_multinomial(features.values, table.arm, len(_labels(table.study)), penalty).scores


def _raw_columns(table: Table) -> tuple[Floats, list[ColumnKind]]:
    kinds: list[ColumnKind] = []
    for domain in table.study.covariates.values():
        number: ColumnKind = "number" if isinstance(domain, Range) else "binary"
        kinds.append("label" if isinstance(domain, Categories) else number)
    return np.column_stack([table.covariates[name] for name in table.study.covariates]), kinds


def _unit_noise(question: Question) -> float:
    """Return the variance of the noise of a mean whose sensitivity is one."""
    return effect_plan(question, _SUPPOSED_SHARE).noise("effect", Fraction(1)).variance


def _labels(study: Study) -> tuple[object, ...]:
    return study.treatment_labels
