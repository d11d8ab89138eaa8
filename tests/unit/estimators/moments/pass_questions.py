"""Questions that are answered in passes, and people with gaps to ask them about."""

import numpy as np
import pyarrow as pa
from tools.loose_study import study_of

import counterveil as cv
from counterveil.data import Table

ROWS = 3000
MISSING = {"a": cv.Fill("0.5"), "c": cv.Drop()}
COVARIATES = {"a": cv.Range(0, 1), "b": cv.Binary(one="yes", zero="no"), "c": cv.Categories(["u", "v", "w"])}


def study(randomised, **words):
    return study_of("t", "y", (0, 3), COVARIATES, control=0, randomised=randomised, missing=MISSING, **words)


def people(randomised, rows=ROWS):
    rng = np.random.default_rng(2)
    a, b, c = rng.random(rows), rng.integers(0, 2, rows), rng.integers(0, 4, rows)
    t = rng.random(rows) < (0.5 if randomised else 0.2 + 0.4 * a + 0.2 * b)
    columns = {"t": t.astype(np.int64), "y": 0.5 * t + a + 0.3 * b + rng.normal(0, 0.1, rows)}
    columns["a"] = pa.array(a, mask=rng.random(rows) < 0.02)
    labels = {"b": np.array(["no", "yes"])[b], "c": np.array(["u", "v", "w", None])[c]}
    return pa.table(columns | labels | {"early": a + rng.normal(1, 0.1, rows)})


def ate(method, randomised=False, **words):
    def asked(data):
        return cv.ate(data, study(randomised), method=method, **WORDS, **words)

    return randomised, asked


def other(function, randomised=False, **words):
    return randomised, lambda data: function(data, study(randomised), **(WORDS | words))


def about(function, declared, **words):
    """Return a question about another study of the same rows, for which a table is attached anew."""

    def asked(data):
        return function(people(True) if isinstance(data, Table) else data, declared, **(WORDS | words))

    return True, asked


WORDS = {"protects": "record", "epsilon": 4, "delta": "1e-6"}
TWO = {"outcomes": {"y": (0, 3), "a": (0, 1)}, "baseline": {"y": "early"}}
SEVERAL = study_of("t", **TWO, control=0, randomised=True, missing={"a": cv.Fill("0.5")})
ARMS = cv.Study(
    cv.Treatment("c", arms=["u", "v", "w"], reference="u"),
    cv.Outcome("y", (0, 3)),
    assignment=cv.Trial(),
    missing={"c": cv.Drop()},
)
CHANGES = {"before": ["a", "early"], "change_range": (-2, 2), "missing": {"a": cv.Drop()}}
EVENTS = study_of("t", "y", (0, 3), control=0, **CHANGES)
RULE = cv.Policy.where(a=(0.3, 0.8), c=["u", "v"])
QUESTIONS = {
    "doubly robust": ate("doubly_robust"),
    "overlap weighted": ate("doubly_robust", estimand="ATO", settings=cv.settings.DoublyRobust(degree=2)),
    "comparison": ate("trial", True, settings=cv.settings.Trial("none")),
    "adjusted trial": ate("trial", True, settings=cv.settings.Trial("covariates")),
    "groups": other(cv.groups, by="c", method="adjusted"),
    "arms of groups": other(cv.groups, True, by="c", method="arms"),
    "difference in means": other(cv.ate, method="difference_in_means", protects="outcome"),
    "groups of outcomes": other(cv.groups, by="c", method="difference_in_means", protects="outcome"),
    "arms": about(cv.arms, ARMS, protects="outcome"),
    "outcomes": about(cv.outcomes, SEVERAL, protects="outcome"),
    "ratios of outcomes": about(cv.outcomes, SEVERAL, protects="outcome", measure="ratio"),
    "outcomes of records": about(cv.outcomes, SEVERAL),
    "periods": about(cv.event_study, EVENTS),
    "periods of outcomes": about(cv.event_study, EVENTS, protects="outcome", method="difference_in_means"),
    "policy": other(cv.policy_value, policy=RULE),
    "T-learner": other(cv.cate, method="t_learner"),
    "R-learner": other(cv.cate, method="r_learner"),
    "overlap": other(cv.overlap),
    "moments": other(cv.moments),
    "moments of outcomes": other(cv.moments, protects="outcome"),
}


def answered(question, data):
    """Return all that a question answers about some rows, with noise from one seed."""
    WORDS["noise"] = cv.SeededNoise(3)
    return question(data).to_dict()
