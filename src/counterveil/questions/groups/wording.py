"""What results about groups, policies and curves say in words: methods, releases, and what is not covered."""

from __future__ import annotations

from counterveil.data import Study
from counterveil.statistics.moments.scoring import Scoring

METHOD_TEXTS = {
    "scores": "mean score of every group, by the share treated",
    "arms": "difference of the arms' means in every group",
    "adjusted": "mean doubly robust score of every group",
}
_WORDS = {
    "centre": "mean outcome, share treated",
    "histogram": "histogram of the scores, for their clip",
    "ranks": "histogram of the ranking, for its quantiles",
    "norms": "histogram of the rows' lengths",
    "gram": "second moments of covariates, treatment and outcome",
    "cells": "number, sum and squares of the clipped scores in every cell",
}


def release_words(found: Scoring) -> tuple[tuple[str, str], ...]:
    """Return what was released and what part of the budget it took."""
    parts = found.plan.parts
    mechanism = "Gaussian noise"
    return tuple(
        (
            _WORDS.get(name, "moments of the outcome's residuals"),
            f"{parts[name]:.0%} of the budget; "
            + (mechanism if not found.pure else f"{found.plan.kind(name).value} of pure noise"),
        )
        for name, _ in found.plan.amounts
    )


def record_details(found: Scoring) -> dict[str, float | str]:
    """Return the single figures of a request that protects records."""
    details: dict[str, float | str] = {
        "rows": found.source.rows,
        "mechanism": "laplace" if found.pure else "gaussian",
    }
    if found.form == "adjusted":
        details["features"] = found.features.size
    return details


# Said of whatever ranks or chooses people by a model.
LEARNED = (
    "a model fitted to the same rows: its recommendations look better on them than on new people; evaluate it on rows "
    "it has not seen"
)


def caveats(study: Study, form: str, by: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return what the intervals do not cover."""
    said = [
        "clamping of outcomes to the declared range, clipping of rare large scores; the intervals are "
        "large-sample ones whose coverage was measured, not proved",
    ]
    if form == "adjusted" and study.treated_share is None:
        said.insert(
            0,
            "undeclared covariates; treatment or outcome depending on covariates in ways that "
            "the features cannot express; propensities outside the declared limits",
        )
    elif study.randomised is not True:
        left = [name for name in study.covariates if name not in by]
        said.insert(
            0,
            "CONFOUNDING within groups: the study is not declared randomised and nothing else is adjusted for"
            if left or not by
            else "CONFOUNDING by anything that is not among the study's covariates",
        )
    return tuple(said)
