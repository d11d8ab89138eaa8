"""The list of what is measured: every form of every question, with the kind of study it is asked of. `auto`, which is
one of the others, is not asked.

`covered` reads off an entry's arguments which form it stands for; `tests/unit/repository/test_growth.py` compares
that with the library's own tables of methods, so that a new method cannot be forgotten here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import counterveil as cv

# The question, its method and what it protects; published forms are questions of their own.
Form = tuple[str, str, str]

PURE: dict[str, Any] = {"epsilon": 1}
GAUSSIAN: dict[str, Any] = {"epsilon": 1, "delta": "1e-8"}
RECORD: dict[str, Any] = {"protects": "record"}
OUTCOME: dict[str, Any] = {"protects": "outcome"}
STRATA = ("x1", "x2", "x3", "x4")
GROUPS = {"by": {"x1": (0.25, 0.5, 0.75), "x2": (0.5,)}}


@dataclass(frozen=True)
class Asked:
    """One entry: a question, its arguments, and the kind of study.

    Kinds are "cohort", "trial", "several arms", "periods", "times" and "outcomes".

    `made` names arguments that are computed from other data before anything is measured.
    """

    question: str
    arguments: Mapping[str, Any]
    kind: str = "cohort"
    made: tuple[str, ...] = ()

    @property
    def covered(self) -> Form:
        said = self.arguments
        return self.question, said.get("method", "auto"), said.get("protects", "record")

    @property
    def function(self) -> Callable[..., Any]:
        """What is called: `cv.ate` and so on."""
        found: Callable[..., Any] = attrgetter(self.question)(cv)
        return found


def asked(
    question: str,
    method: str,
    *words: Mapping[str, Any],
    kind: str = "cohort",
    made: tuple[str, ...] = (),
    **rest: Any,
) -> Asked:
    """Return an entry whose arguments are put together from `words` and `rest`."""
    arguments: dict[str, Any] = {"method": method}
    for one in (*words, rest):
        arguments |= one
    return Asked(question, arguments, kind, made)


def published(
    form: str, *words: Mapping[str, Any], made: tuple[str, ...] = (), kind: str = "cohort", **rest: Any
) -> Asked:
    """Return the entry of a published form."""
    arguments: dict[str, Any] = {} if form.endswith("_proved") else {"accept": "unproved"}
    for one in (*words, rest):
        arguments |= one
    return Asked(f"published.{form}", arguments, kind, made)


def strata(**settings: Any) -> dict[str, Any]:
    """Return the settings of 256 strata out of four covariates, cut in four each."""
    return {"settings": cv.settings.Stratified(strata=STRATA, **settings)}


def trial(*settings: str) -> dict[str, Any]:
    """Return the settings of one comparison of a trial's arms."""
    return {"settings": cv.settings.Trial(*settings)}


def half(row: Mapping[str, Any]) -> Any:
    """Treat where the first covariate is large: a rule that is a function, asked about one row at a time."""
    return row["x1"] > 0.5


OUTCOME_EFFECTS = {
    "difference in means": asked("ate", "difference_in_means", OUTCOME, PURE, kind="trial"),
    "weighting": asked("ate", "weighting", OUTCOME, PURE),
    "weighting, variance by row": asked(
        "ate", "weighting", OUTCOME, PURE, settings=cv.settings.Weighting(variance_by="row")
    ),
    "matching": asked("ate", "matching", OUTCOME, PURE),
    "matching, variance by arm": asked(
        "ate", "matching", OUTCOME, PURE, settings=cv.settings.Matching(variance_by="arm")
    ),
    "matching, paper": published("outcome_matching", PURE),
    "stratified": asked("ate", "stratified", OUTCOME, PURE, strata()),
}
PAIR: dict[str, Any] = {"protects": "treatment and outcome"}
PAIR_EFFECTS = {
    "doubly robust": asked("ate", "doubly_robust", PAIR, PURE),
    "trial": asked("ate", "trial", PAIR, PURE, kind="trial"),
}
RECORD_EFFECTS = {
    "difference in means": asked("ate", "trial", RECORD, PURE, trial("none", "pooled"), kind="trial"),
    "contrast": asked("ate", "trial", RECORD, PURE, trial("none", "arms"), kind="trial"),
    "adjusted contrast": asked("ate", "trial", RECORD, PURE, trial("covariates"), kind="trial"),
    "doubly robust": asked("ate", "doubly_robust", RECORD, GAUSSIAN),
    "doubly robust, pure": asked("ate", "doubly_robust", RECORD, {"epsilon": 4}),
    "stratified": asked("ate", "stratified", RECORD, PURE, strata()),
    "stratified, smooth": published("smooth_matching_proved", PURE, kind="strata"),
    "stratified, paper": published("smooth_matching", GAUSSIAN, kind="strata"),
    "stratified, bought cuts": asked(
        "ate",
        "stratified",
        RECORD,
        PURE,
        settings=cv.settings.Stratified(strata=("x5", "x6"), cuts={"x5": 8, "x6": 8}),
    ),
    "ipw": published("ipw_proved", PURE),
    "ipw, paper": published("ipw", GAUSSIAN),
    "cross fit": published("cross_fit_proved", GAUSSIAN),
    "cross fit, paper": published("cross_fit", GAUSSIAN),
    "fold aggregation": asked("ate", "sample_and_aggregate", RECORD, PURE),
    "fold aggregation, aipw": asked(
        "ate", "sample_and_aggregate", RECORD, PURE, settings=cv.settings.Folds(learner="aipw")
    ),
    "matching": published("record_matching_proved", PURE),
    "matching, paper": published("record_matching", PURE),
}
ARMS = {
    "difference in means": asked("arms", "difference_in_means", OUTCOME, PURE, kind="several arms"),
    "weighting": asked("arms", "weighting", OUTCOME, PURE, kind="several arms"),
    "matching": asked("arms", "matching", OUTCOME, PURE, kind="several arms"),
    "pairs": asked("arms", "doubly_robust", PAIR, GAUSSIAN, kind="several arms"),
    "records": asked("arms", "difference_in_means", RECORD, PURE, kind="several arms"),
    "adjusted records": asked("arms", "doubly_robust", RECORD, GAUSSIAN, kind="several arms"),
}
GROUP_EFFECTS = {
    "difference in means": asked("groups", "difference_in_means", OUTCOME, PURE, GROUPS, kind="trial"),
    "weighting": asked("groups", "weighting", OUTCOME, PURE, GROUPS),
    "matching": asked("groups", "matching", OUTCOME, PURE, GROUPS),
    "adjusted, pairs": asked("groups", "adjusted", PAIR, PURE, GROUPS),
    "arms": asked("groups", "arms", RECORD, PURE, GROUPS, kind="trial"),
    "adjusted": asked("groups", "adjusted", RECORD, GAUSSIAN, GROUPS),
}
PERIODS = {
    name: asked("event_study", method, level, budget, kind="periods")
    for name, method, level, budget in (
        ("difference in means", "difference_in_means", OUTCOME, GAUSSIAN),
        ("weighting", "weighting", OUTCOME, PURE),
        ("matching", "matching", OUTCOME, PURE),
        ("difference in means, records", "difference_in_means", RECORD, PURE),
    )
}
TIMES = {
    name: asked("survival", method, level, PURE, kind="times")
    for name, method, level in (
        ("kaplan-meier", "kaplan_meier", OUTCOME),
        ("stratified", "stratified", OUTCOME),
        ("weighting", "weighting", OUTCOME),
        ("kaplan-meier, records", "kaplan_meier", RECORD),
        ("stratified, records", "stratified", RECORD),
    )
}
SHARES = {
    "trial": asked("quantiles", "trial", OUTCOME, PURE, kind="trial"),
    "weighting": asked("quantiles", "weighting", OUTCOME, PURE),
    "trial, records": asked("quantiles", "trial", RECORD, PURE, kind="trial"),
    "trial, pairs": asked("quantiles", "trial", PAIR, PURE, kind="trial"),
    "weighting, pairs": asked("quantiles", "weighting", PAIR, PURE),
}
RULES = {
    "overlap": Asked("overlap", RECORD | GAUSSIAN),
    "moments": Asked("moments", RECORD | GAUSSIAN),
    "moments, outcomes": Asked("moments", OUTCOME | GAUSSIAN),
    "policy value, scores": asked(
        "policy_value", "scores", RECORD, PURE, policy=cv.Policy.where(x1=(0.5, 1.0)), kind="trial"
    ),
    "policy value, of a model": asked("policy_value", "adjusted", RECORD, GAUSSIAN, made=("policy",)),
    "policy value, function": asked("policy_value", "adjusted", RECORD, GAUSSIAN, policy=half),
    "curve, scores": asked("targeting_curve", "scores", RECORD, PURE, made=("model",), kind="trial"),
    "curve, adjusted": asked("targeting_curve", "adjusted", RECORD, GAUSSIAN, made=("model",)),
}
FUNCTIONS = {
    "series": asked("cate", "series", OUTCOME, GAUSSIAN),
    "series, pairs": asked("cate", "series", PAIR, PURE),
    "t_learner": asked("cate", "t_learner", RECORD, GAUSSIAN),
    "r_learner": asked("cate", "r_learner", RECORD, GAUSSIAN),
    "influence, paper": published(
        "cate_finite",
        PURE,
        made=("queries",),
        settings=cv.published.InfluenceSettings(outcome="linear", propensity="logistic", effect="linear"),
    ),
    "kernel, paper": published(
        "cate_functional",
        PURE,
        made=("queries",),
        settings=cv.published.KernelSettings(outcome="linear", propensity="logistic"),
    ),
}

OUTCOMES = {
    "difference in means": asked("outcomes", "difference_in_means", OUTCOME, PURE, kind="outcomes"),
    "weighting": asked("outcomes", "weighting", OUTCOME, PURE, kind="outcomes"),
    "matching": asked("outcomes", "matching", OUTCOME, PURE, kind="outcomes"),
    "trial": asked("outcomes", "trial", RECORD, PURE, kind="outcomes"),
    "pairs": asked("outcomes", "doubly_robust", PAIR, PURE, kind="outcomes"),
}

ASKED: dict[str, Asked] = {
    f"{prefix}: {name}": entry
    for prefix, entries in (
        ("outcome", OUTCOME_EFFECTS),
        ("pair", PAIR_EFFECTS),
        ("record", RECORD_EFFECTS),
        ("several", ARMS),
        ("groups", GROUP_EFFECTS),
        ("periods", PERIODS),
        ("outcomes", OUTCOMES),
        ("times", TIMES),
        ("shares", SHARES),
        ("rules", RULES),
        ("cate", FUNCTIONS),
    )
    for name, entry in entries.items()
}
