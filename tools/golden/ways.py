"""Every way to ask, by its name, with the people and the study that it asks about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from tools.loose_study import study_of

import counterveil as cv

ESTIMANDS = ("ATE", "ATT", "ATC")

Columns = dict[str, Any]
Ask = Callable[..., Any]


def people(rows: int, kind: str = "usual") -> Columns:
    """Return simulated people with a treatment, three covariates and an outcome from -3 to 5."""
    draw = np.random.default_rng(rows)
    a, b, c = draw.random(rows), draw.integers(0, 2, rows), draw.integers(0, 3, rows)
    t = (np.arange(rows) % 2 == 0).astype(int)
    y = np.clip(1 + a + t + draw.normal(0, 1, rows), -3, 5)
    if kind == "constant outcomes":
        y = np.ones(rows)
    elif kind == "outcomes at the bounds":
        y = np.where(draw.random(rows) < 0.5, -3.0, 5.0)
    elif kind == "outcomes at one bound":
        y = np.full(rows, 5.0)
    elif kind == "two treated":
        t = (np.arange(rows) < 2).astype(int)
    elif kind == "equal covariates":
        a, b, c = np.zeros(rows), np.zeros(rows, int), np.zeros(rows, int)
    elif kind == "every row its own stratum":
        a = np.arange(rows) / rows
    elif kind == "treatment follows covariates":
        a = t.astype(float)
    return {"a": a, "b": b, "c": np.array(["p", "q", "r"])[c], "t": t, "y": y, "g": np.arange(rows) // 8}


KINDS = (
    "usual",
    "constant outcomes",
    "outcomes at the bounds",
    "outcomes at one bound",
    "two treated",
    "equal covariates",
    "every row its own stratum",
    "treatment follows covariates",
)


def study(**declared: Any) -> cv.Study:
    """Return the study of these people, with what else is declared."""
    fine = [f"{place}/20" for place in range(1, 20)]
    covariates = {"a": cv.Range(0, 1).cut(*fine), "b": cv.Binary(), "c": cv.Categories(["p", "q", "r"])}
    labels = {} if "arms" in declared else {"treated": 1, "control": 0}
    one = {} if "outcomes" in declared else {"outcome": "y", "outcome_range": (-3, 5)}
    return study_of(treatment="t", **(one | {"covariates": covariates} | labels | declared))


TRIAL = {"randomised": True}
SHARED = {"randomised": True, "treated_share": "1/2"}
CLUSTERS = {"randomised": True, "cluster": "g"}
UNEVEN = {"randomised": True, "treated_share": "1/50"}
PLAIN = {"covariates": {"a": cv.Range(0, 1)}}
RATIO = TRIAL | {"denominator": "a", "denominator_range": (0, 1), "covariates": {}}
POINTS = {"a": np.array([0.1, 0.9]), "b": np.array([0, 1]), "c": np.array(["p", "q"])}
QUICK = {"outcome": "linear", "propensity": "logistic"}


class Slope:
    """A public model of effects that reads one row at a time."""

    def effect(self, X: Any) -> np.ndarray:
        """Return the covariate a."""
        return np.asarray(X["a"], dtype=float)


@dataclass(frozen=True)
class Asked:
    """One way to ask: what is declared, the call, and the question that it asks."""

    declared: dict[str, Any]
    ask: Ask
    question: str = "ate"


def _ate(declared: dict[str, Any] | None = None, **given: Any) -> Asked:
    return Asked(declared or {}, lambda session, **budget: session.ate(**(given | budget)))


def _other(question: str, declared: dict[str, Any] | None = None, **given: Any) -> Asked:
    return Asked(
        declared or {}, lambda session, **budget: getattr(session, question)(**(given | budget)), question
    )


def _published(
    form: str, question: str = "ate", declared: dict[str, Any] | None = None, **given: Any
) -> Asked:
    accepted = {} if form.endswith("_proved") else {"accept": "unproved"}
    return Asked(
        declared or {},
        lambda session, **budget: getattr(cv.published, form)(session, **(accepted | given | budget)),
        question,
    )


def _strata(**given: Any) -> dict[str, Any]:
    return {"protects": "record", "method": "stratified", "settings": cv.settings.Stratified(**given)}


# The comparisons of a trial of private records, by their names.
TRIALS: dict[str, dict[str, Any]] = {
    "contrast": {"method": "trial", "settings": cv.settings.Trial("none", "arms")},
    "adjusted_contrast": {"method": "trial", "settings": cv.settings.Trial("covariates")},
    "difference_in_means": {"method": "trial", "settings": cv.settings.Trial("none", "pooled")},
    "auto": {"method": "auto"},
}


def _fails(*_: Any) -> float:
    raise MemoryError


def ways() -> dict[str, Asked]:
    """Return every way to ask by its name."""
    found: dict[str, Asked] = {}
    for estimand in ESTIMANDS:
        one = {"estimand": estimand}
        for method in ("difference_in_means", "matching", "weighting", "stratified", "auto"):
            declared = TRIAL if method == "difference_in_means" else {}
            found[f"{method} outcome {estimand}"] = _ate(declared, protects="outcome", method=method, **one)
        for kind, given in TRIALS.items():
            for name, declared in (("", TRIAL), (" known share", SHARED)):
                found[f"{kind} record {estimand}{name}"] = _ate(declared, protects="record", **given, **one)
        for method in ("doubly_robust", "stratified", "auto"):
            found[f"{method} record {estimand} observational"] = _ate(protects="record", method=method, **one)
        found[f"ipw paper {estimand}"] = _published("ipw", **one)
        for form in ("ipw_proved", "cross_fit_proved", "smooth_matching_proved"):
            found[f"{form} {estimand}"] = _published(form, **one)
    for method in ("doubly_robust", "stratified"):
        found[f"{method} record known share"] = _ate(SHARED, protects="record", method=method)
        found[f"{method} record uneven share"] = _ate(UNEVEN, protects="record", method=method)
    for kind, given in (TRIALS | {"sample_and_aggregate": {"method": "sample_and_aggregate"}}).items():
        found[f"{kind} record uneven share"] = _ate(UNEVEN, protects="record", **given)
    for bins in (2, 18, 19, 20, 64):
        found[f"stratified {bins} bought cuts"] = _ate(PLAIN, **_strata(cuts={"a": bins}))
    for learner in ("ols", "aipw", _fails):
        folds = cv.settings.Folds(learner=learner)
        found[f"sample_and_aggregate {learner if isinstance(learner, str) else 'failing'}"] = _ate(
            protects="record", method="sample_and_aggregate", settings=folds
        )
    for method in ("difference_in_means", "matching", "weighting", "auto"):
        found[f"{method} outcome clusters"] = _ate(CLUSTERS, protects="outcome", method=method)
    found["trial record clusters"] = _ate(CLUSTERS, protects="record", method="trial")
    for level in ("outcome", "record"):
        found[f"groups {level} clusters"] = _other("groups", CLUSTERS, by="b", protects=level)
    found["matching paper"] = _published("record_matching")
    for form in ("record_matching_proved", "ipw_proved", "cross_fit_proved"):
        for name, declared in (("", {}), (" known share", SHARED), (" uneven share", UNEVEN)):
            found[f"{form}{name}"] = _published(form, declared=declared)
    found["stratified paper"] = _published("smooth_matching")
    found["cross_fit paper"] = _published("cross_fit")
    found["matching paper outcome"] = _published("outcome_matching")
    return found | _questions()


def _questions() -> dict[str, Asked]:
    """Return the ways to ask for more than one effect."""
    three = {"arms": (0, 1, 2), "reference": 0, "randomised": True}
    found = {"arms pairs": _other("arms", three, protects="treatment and outcome")}
    found["arms records"] = _other("arms", three, protects="record")
    found["arms adjusted records"] = _other("arms", three | {"randomised": False}, protects="record")
    for method in ("difference_in_means", "weighting", "matching"):
        found[f"arms {method}"] = _other("arms", three, protects="outcome", method=method)
        declared = TRIAL if method == "difference_in_means" else {}
        found[f"groups {method}"] = _other("groups", declared, protects="outcome", method=method, by="b")
    for method in ("scores", "arms", "adjusted", "auto"):
        declared = SHARED if method in ("scores", "auto") else TRIAL if method == "arms" else {}
        given = {"protects": "record", "method": method}
        if method != "scores":
            found[f"groups {method}"] = _other("groups", declared, by=["b", "c"], **given)
        if method == "arms":
            continue
        found[f"policy {method}"] = _other("policy_value", declared, policy=cv.Policy.where(b=[1]), **given)
        found[f"curve {method}"] = _other("targeting_curve", declared, model=Slope(), bins=4, **given)
    before = {
        "before": ("a", "b"),
        "before_range": (0, 1),
        "covariates": {"c": cv.Categories(["p", "q", "r"])},
    }
    for protects in ("outcome", "record"):
        found[f"change {protects}"] = _ate(before, protects=protects)
        found[f"change plain {protects}"] = _ate(before | {"covariates": {}}, protects=protects)
        found[f"event study {protects}"] = _other("event_study", before, protects=protects)
        found[f"ratio {protects}"] = _ate(RATIO, protects=protects)
    times = {"event": "b", "horizon": 5, "outcome_range": None, "covariates": {}, "randomised": True}
    strata = times | {"covariates": {"c": cv.Categories(["p", "q", "r"])}, "randomised": False}
    for protects in ("outcome", "record"):
        found[f"survival {protects}"] = _other("survival", times, protects=protects)
        found[f"survival strata {protects}"] = _other(
            "survival", strata, protects=protects, method="stratified"
        )
        found[f"quantiles {protects}"] = _other(
            "quantiles", {"covariates": {}, "randomised": True}, protects=protects
        )
    for protects in ("outcome", "treatment and outcome"):
        found[f"quantiles weighting {protects}"] = _other("quantiles", protects=protects)
    found["survival weighting"] = _other("survival", strata, protects="outcome")
    found["survival sums"] = _other(
        "survival", times | {"grid": 40}, protects="record", settings=cv.settings.Survival(release="sums")
    )
    found["event study matching"] = _other("event_study", before, protects="outcome", method="matching")
    found["event study declared changes"] = _other(
        "event_study", before | {"change_range": (-1, 4)}, protects="outcome"
    )
    found |= _measures()
    found["overlap"] = _other("overlap")
    found["moments"] = _other("moments", terms=["t:a", "a:a"])
    found["moments outcomes"] = _other("moments", protects="outcome", terms=["t:a"])
    found["moments of arms"] = _other("moments", {"arms": (0, 1, 2), "reference": 0}, outcomes=["b"])
    for method in ("auto", "t_learner", "r_learner"):
        found[f"cate {method}"] = _other("cate", method=method)
        found[f"cate {method} known share"] = _other("cate", SHARED, method=method)
    for method in ("auto", "series"):
        found[f"cate {method} outcomes"] = _other("cate", protects="outcome", method=method)
        found[f"cate {method} outcomes in a trial"] = _other(
            "cate", SHARED, protects="outcome", method=method
        )
    found["cate auto queries"] = _other("cate", queries=POINTS)
    kernel, influence = cv.published.KernelSettings(**QUICK), cv.published.InfluenceSettings(**QUICK)
    found["cate kernel paper"] = _published("cate_functional", "cate", queries=POINTS, settings=kernel)
    found["cate influence paper"] = _published("cate_finite", "cate", queries=POINTS, settings=influence)
    return found


def _measures() -> dict[str, Asked]:
    """Return the ways to ask for other measures than the difference, and for several outcomes."""
    positive, risk = TRIAL | {"outcome_range": (0, 5)}, TRIAL | {"outcome_range": (0, 1)}
    found: dict[str, Asked] = {}
    for protects in ("outcome", "record"):
        found[f"measure ratio {protects}"] = _ate(positive, protects=protects, measure="ratio")
        found[f"measure odds ratio {protects}"] = _ate(risk, protects=protects, measure="odds_ratio")
        found[f"measure nnt {protects}"] = _ate(risk, protects=protects, measure="nnt")
    for method in ("difference_in_means", "matching"):
        found[f"measure lift {method}"] = _ate(positive, protects="outcome", method=method, measure="lift")
    labels = {"c": cv.Categories(["p", "q", "r"])}
    strata = positive | {"covariates": labels}
    found["measure ratio stratified"] = _ate(strata, protects="outcome", method="stratified", measure="ratio")
    several = {"outcomes": {"y": (-3, 5), "a": (0, 1)}, "covariates": labels, "randomised": True}
    above = several | {"outcomes": {"y": (0, 5), "a": (0, 1)}}
    three = several | {"arms": (0, 1, 2), "reference": 0}
    earlier = several | {"baseline": {"a": "b"}}
    for protects in ("outcome", "record"):
        found[f"outcomes {protects}"] = _other("outcomes", several, protects=protects)
        found[f"outcomes earlier {protects}"] = _other("outcomes", earlier, protects=protects)
        found[f"outcomes lift {protects}"] = _other("outcomes", above, protects=protects, measure="lift")
    found["outcomes matching"] = _other("outcomes", several, protects="outcome", method="matching")
    found["outcomes pairs"] = _other("outcomes", several, protects="treatment and outcome")
    found["outcomes arms records"] = _other("outcomes", three, protects="record")
    found["outcomes arms"] = _other("outcomes", three, protects="outcome", importance={"a": 2})
    return found


def data_for(asked: Asked, rows: int, kind: str) -> Columns:
    """Return people for one way to ask; those of three arms are in them by turns."""
    found = people(rows, kind)
    if "arms" in asked.declared:
        found["t"] = np.arange(rows) % 3
    return {name: found[name] for name in study(**asked.declared).read_columns}
