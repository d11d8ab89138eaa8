"""Every method asked at the edges of what may be asked; prints what is charged without an answer.

    python -m tools.answer_sweep            # the whole sweep: about an hour of CPU
    python -m tools.answer_sweep --part 40  # every 40th question of it

A question may be refused before it is charged. Once charged it must be answered, in less than 20 s of CPU and 1 GiB
beyond what the program itself takes, and its result must print and give intervals at other levels.
"""

from __future__ import annotations

import argparse
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, product
from math import isnan
from typing import Any

import numpy as np

import counterveil as cv
from counterveil.errors import CounterveilError
from counterveil.session import SeededNoise

ROWS = (4, 5, 8, 20, 200)
EPSILONS = ("1e-12", "1e-8", "1e-4", "0.001", "0.1", "1", "50", "1e4")
DELTAS = ("0", "1e-6", "1e-100")
ESTIMANDS = ("ATE", "ATT", "ATC")
LEVELS = (0.5, 0.999999)
# The largest bases of effects as functions take ten seconds, in one decomposition of public numbers.
MOST_SECONDS, MOST_BYTES = 20.0, 1 << 30

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
    return cv.Study(treatment="t", **(one | {"covariates": covariates} | labels | declared))


TRIAL = {"randomised": True}
SHARED = {"randomised": True, "treated_share": "1/2"}
CLUSTERS = {"randomised": True, "cluster": "g"}
UNEVEN = {"randomised": True, "treated_share": "1/50"}
PLAIN = {"covariates": {"a": cv.Range(0, 1)}}
RATIO = TRIAL | {"per": "a", "per_range": (0, 1), "covariates": {}}
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
    return Asked(declared or {}, lambda curator, **budget: curator.ate(**(given | budget)))


def _other(question: str, declared: dict[str, Any] | None = None, **given: Any) -> Asked:
    return Asked(
        declared or {}, lambda curator, **budget: getattr(curator, question)(**(given | budget)), question
    )


def _published(form: str, question: str = "ate", **given: Any) -> Asked:
    return Asked(
        {},
        lambda curator, **budget: getattr(cv.published, form)(curator, accept="unproved", **(given | budget)),
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
        for method in ("matching", "doubly_robust", "score_strata", "stratified", "ipw", "cross_fit", "auto"):
            found[f"{method} record {estimand} observational"] = _ate(protects="record", method=method, **one)
        for sensitivity in ("smooth", "global"):
            found[f"stratified {sensitivity} {estimand}"] = _ate(**_strata(sensitivity=sensitivity), **one)
        found[f"ipw paper {estimand}"] = _published("ipw", **one)
    for method in (
        "matching",
        "doubly_robust",
        "score_strata",
        "stratified",
        "ipw",
        "cross_fit",
    ):
        found[f"{method} record known share"] = _ate(SHARED, protects="record", method=method)
        found[f"{method} record uneven share"] = _ate(UNEVEN, protects="record", method=method)
    for kind, given in (TRIALS | {"fold_aggregation": {"method": "fold_aggregation"}}).items():
        found[f"{kind} record uneven share"] = _ate(UNEVEN, protects="record", **given)
    for noise in ("lomax", "student", "laplace"):
        smooth = _strata(sensitivity="smooth", noise=noise, unmatched=True)
        found[f"stratified smooth {noise} unmatched"] = _ate(**smooth)
    found["stratified single"] = _ate(**_strata(sensitivity="smooth", pairing="single"))
    found["stratified global single"] = _ate(**_strata(sensitivity="global", pairing="single"))
    for bins in (2, 18, 19, 20, 64):
        found[f"stratified {bins} bought cuts"] = _ate(PLAIN, **_strata(cuts={"a": bins}))
    found["score_strata kappa"] = _ate(
        protects="record", method="score_strata", settings=cv.settings.ScoreStrata(kappa=0.5)
    )
    for learner in ("ols", "aipw", _fails):
        folds = cv.settings.Folds(learner=learner)
        found[f"fold_aggregation {learner if isinstance(learner, str) else 'failing'}"] = _ate(
            protects="record", method="fold_aggregation", settings=folds
        )
    for method in ("difference_in_means", "matching", "weighting", "auto"):
        found[f"{method} outcome clusters"] = _ate(CLUSTERS, protects="outcome", method=method)
    found["trial record clusters"] = _ate(CLUSTERS, protects="record", method="trial")
    found["matching paper"] = _published("record_matching")
    found["stratified paper"] = _published("smooth_matching")
    found["cross_fit paper"] = _published("cross_fit")
    found["matching paper outcome"] = _published("outcome_matching")
    return found | _questions()


def _questions() -> dict[str, Asked]:
    """Return the ways to ask for more than one effect."""
    three = {"arms": (0, 1, 2), "reference": 0, "randomised": True}
    found: dict[str, Asked] = {}
    for method in ("difference_in_means", "weighting", "matching"):
        found[f"arms {method}"] = _other("arms", three, protects="outcome", method=method)
        declared = TRIAL if method == "difference_in_means" else {}
        found[f"groups {method}"] = _other("groups", declared, protects="outcome", method=method, by="b")
    for method in ("scores", "arms", "adjusted", "auto"):
        declared = SHARED if method in ("scores", "auto") else TRIAL if method == "arms" else {}
        given = {"protects": "record", "method": method}
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
    found["moments"] = _other("moments", interactions=["t:a", "a:a"])
    found["moments outcomes"] = _other("moments", protects="outcome", interactions=["t:a"])
    found["moments of arms"] = _other("moments", {"arms": (0, 1, 2), "reference": 0}, outcomes=["b"])
    for method in ("auto", "t_learner", "r_learner", "random_features"):
        found[f"cate {method}"] = _other("cate", method=method)
        found[f"cate {method} known share"] = _other("cate", SHARED, method=method)
    for method in ("auto", "series"):
        found[f"cate {method} outcomes"] = _other("cate", protects="outcome", method=method)
        found[f"cate {method} outcomes in a trial"] = _other(
            "cate", SHARED, protects="outcome", method=method
        )
    for method in ("bins", "fold_aggregation", "auto"):
        found[f"cate {method} queries"] = _other("cate", method=method, queries=POINTS)
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
    earlier = several | {"earlier": {"a": "b"}}
    for protects in ("outcome", "record"):
        found[f"outcomes {protects}"] = _other("outcomes", several, protects=protects)
        found[f"outcomes earlier {protects}"] = _other("outcomes", earlier, protects=protects)
        found[f"outcomes lift {protects}"] = _other("outcomes", above, protects=protects, measure="lift")
    found["outcomes matching"] = _other("outcomes", several, protects="outcome", method="matching")
    found["outcomes arms"] = _other("outcomes", three, protects="outcome", importance={"a": 2})
    return found


@dataclass(frozen=True)
class Outcome:
    """How one question went: a code where it was refused, a fault where it was charged and failed."""

    charged: bool
    refused: str | None
    fault: str | None
    seconds: float
    answer: Any = None


def data_for(asked: Asked, rows: int, kind: str) -> Columns:
    """Return people for one way to ask; those of three arms are in them by turns."""
    found = people(rows, kind)
    if "arms" in asked.declared:
        found["t"] = np.arange(rows) % 3
    return {name: found[name] for name in study(**asked.declared).read_columns}


def run(asked: Asked, rows: int, kind: str, budget: dict[str, str], seed: int = 1) -> Outcome:
    """Return how one question went, asked of an account of its own."""
    began = time.process_time()
    signal.signal(signal.SIGPROF, _too_long)
    signal.setitimer(signal.ITIMER_PROF, 2 * MOST_SECONDS)
    whole = cv.Budget("1e9", "1e-2")
    curator: cv.Curator | None = None
    refused = fault = answer = None
    try:
        declared = study(**asked.declared)
        curator = cv.Curator(data_for(asked, rows, kind), declared, budget=whole, noise=SeededNoise(seed))
        answer = asked.ask(curator, **budget)
        finish(answer)
    except CounterveilError as error:
        refused = error.code
    except Exception:
        fault = traceback.format_exc(limit=-3)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    charged = curator is not None and curator.account().requests > 0
    return Outcome(charged, refused, fault, time.process_time() - began, answer)


def _too_long(*_: object) -> None:
    raise TimeoutError(f"more than {2 * MOST_SECONDS} s of CPU")


def finish(answer: Any) -> None:
    """Ask everything that is free of an answer; intervals must be numbers in order."""
    str(answer)
    points = (POINTS,) if isinstance(answer, cv.results.CateModel) else ()
    found: list[Any] = []
    # One effect for all has no intervals for people (CV-P528): that of the average is in its table.
    if not points or answer.heterogeneous:
        found = [answer.interval(*points, level) for level in LEVELS]
        if hasattr(answer, "band"):
            found += [answer.band(*points, level) for level in LEVELS]
    else:
        found = [[effect.interval(level) for effect in answer.table] for level in LEVELS]
    if isinstance(answer, cv.results.Moments):
        fits = [answer.regress(formula) for formula in ("y ~ t + a + c", "y ~ a + [b ~ c]")]
        found += [fit.interval(level) for fit in fits for level in LEVELS]
        text = [(str(fit), fit.tidy(), fit.to_dict()) for fit in fits]
        assert all(map(any, text))
    for low, high in chain.from_iterable(map(_ends, found)):
        if isnan(low) or isnan(high) or low > high:
            raise AssertionError(f"interval from {low} to {high}")
    if not points:
        answer.tidy()
    type(answer).from_dict(answer.to_dict())


def _ends(found: Any) -> Iterator[tuple[float, float]]:
    if isinstance(found, dict):
        yield from found.values()
    elif isinstance(found, list):
        yield from found
    else:
        low, high = (np.atleast_1d(end) for end in found)
        yield from zip(low.tolist(), high.tolist(), strict=True)


def questions() -> Iterator[tuple[str, int, str, dict[str, str]]]:
    """Yield every question of the sweep: a way to ask, rows, kind of data and budget."""
    for name, rows, epsilon, delta in product(ways(), ROWS, EPSILONS, DELTAS):
        yield name, rows, KINDS[0], {"epsilon": epsilon, "delta": delta}
    for name, rows, kind, epsilon in product(ways(), (8, 200), KINDS[1:], ("1e-4", "1")):
        yield name, rows, kind, {"epsilon": epsilon, "delta": "0"}
        yield name, rows, kind, {"epsilon": epsilon, "delta": "1e-6"}


def trouble(found: Outcome) -> str | None:
    """Return what is wrong with how a question went, None where nothing is."""
    if found.fault is not None:
        return f"{'CHARGED, ' if found.charged else ''}fault:\n{found.fault}"
    if found.refused is not None and found.charged:
        return f"refused with {found.refused} after it was charged"
    return f"{found.seconds:.1f} s of CPU" if found.seconds > MOST_SECONDS else None


def main(arguments: list[str] | None = None) -> int:
    """Print every question of the sweep that went wrong, then how many there were; 1 where there are any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", type=int, default=1, help="ask every so manyeth question")
    parser.add_argument("--start", type=int, default=0, help="leave so many out first")
    parser.add_argument("--way", default="", help="only ways to ask whose names hold this")
    chosen = parser.parse_args(arguments)
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    resource.setrlimit(resource.RLIMIT_AS, (used + 4 * MOST_BYTES, resource.RLIM_INFINITY))
    known, asked, wrong, answered = ways(), 0, 0, 0
    listed = [one for one in questions() if chosen.way in one[0]]
    for name, rows, kind, budget in listed[chosen.start :: chosen.part]:
        found = run(known[name], rows, kind, budget)
        asked, answered = asked + 1, answered + (found.answer is not None)
        said = trouble(found)
        if said is not None:
            wrong += 1
            print(f"{name}, {rows} rows, {kind}, {budget}: {said}", flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - used
    print(f"{asked} questions, {answered} answered, {wrong} went wrong; at most {peak / 2**20:.0f} MiB")
    return 1 if wrong or peak > MOST_BYTES else 0


if __name__ == "__main__":
    sys.exit(main())
