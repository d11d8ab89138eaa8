"""Arguments of the Python functions: wrong types, wrong sizes, numbers of other libraries, values in values."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tools.fuzzing import documents, nasty, trials
from tools.fuzzing.judging import Answer, Attempt

import counterveil as cv
from counterveil.data import Table

_SETTINGS = (
    *(
        getattr(cv.settings, name)
        for name in cv.settings.__all__
        if name not in ("ModelPair", "WeightLimits")
    ),
    cv.published.InfluenceSettings,
    cv.published.KernelSettings,
)
_METHOD_OF = {
    "Auto": "auto", "DoublyRobust": "doubly_robust",
    "Folds": "sample_and_aggregate", "Matching": "matching",
    "Stratified": "stratified", "Trial": "trial", "Weighting": "weighting",
}  # fmt: skip


def make(rng: random.Random, folder: Path) -> Attempt:
    """Return a call with one to three wrong arguments."""
    makers: tuple[Callable[[random.Random, Path], Attempt], ...] = (
        _question, _question, _question, _settings, _settings, _declaration, _declaration, _ledger, _reading,
        _plan,
        _policy,
    )  # fmt: skip
    return rng.choice(makers)(rng, folder)


def _spoiled(rng: random.Random, arguments: dict[str, Any], others: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return arguments of which one to three are replaced, or given where they were left out."""
    names = [*arguments, *others]
    return arguments | {rng.choice(names): nasty.value(rng) for _ in range(rng.choice((1, 1, 2, 3)))}


def _question(rng: random.Random, _folder: Path) -> Attempt:
    name, arguments = trials.question(rng)
    more = {
        "ate": ("method", "estimand", "delta", "level", "mechanism", "settings", "trim", "request_id"),
        "groups": ("by", "method", "delta", "level", "mechanism", "settings", "request_id"),
        "cate": ("method", "protects", "level", "queries", "settings", "request_id"),
    }.get(name, ("estimand", "delta", "level", "settings", "accept", "request_id"))
    asked = _spoiled(rng, arguments, more)
    study = nasty.value(rng) if rng.random() < 0.08 else trials.STUDY
    people = trials.people(rng, rng.choice((16, 40, 120)))
    return lambda: trials.ask(people, study, name, asked)


def _settings(rng: random.Random, _folder: Path) -> Attempt:
    kind = rng.choice(_SETTINGS)
    names = list(kind.__dataclass_fields__)
    values = {rng.choice(names): nasty.value(rng) for _ in range(rng.choice((1, 1, 2, 3)))}
    people = trials.people(rng, 120)
    protects = rng.choice(("outcome", "record"))

    def attempt() -> Answer:
        made = kind(**values)
        method = _METHOD_OF.get(kind.__name__)
        if method is None:
            return Answer([repr(made)])
        asked = {"protects": protects, "epsilon": 5, "method": method, "settings": made}
        return trials.ask(people, trials.STUDY, "ate", asked)

    return attempt


def _declaration(rng: random.Random, _folder: Path) -> Attempt:
    given: dict[str, Any] = {
        "treatment": "arm", "outcome": {"score": (0, 1)}, "covariates": {"age": cv.Range(0, 9)},
    }  # fmt: skip
    others = ("assignment", "people", "clusters", "missing", "where", "estimated")
    made = _spoiled(rng, given, others)
    one, two, several = nasty.value(rng), nasty.value(rng), [nasty.value(rng), nasty.value(rng)]
    calls: tuple[Callable[[], Any], ...] = (
        lambda: cv.Study(**made), lambda: cv.Study(**made), lambda: cv.Range(one, two),
        lambda: cv.Treatment("arm", treated=one, control=two), lambda: cv.Treatment("arm", arms=several, reference=one),
        lambda: cv.Outcome(one, two), lambda: cv.Change("y", (0, 1), before=one, time=two, after=several),
        lambda: cv.Ratio("y", (0, 1), one, two), lambda: cv.TimeToEvent("y", "e", horizon=one, grid=two),
        lambda: cv.Outcomes(one, baseline=two), lambda: cv.Trial(one), lambda: cv.Propensity(one),
        lambda: cv.People("id", rules=one, order=two), lambda: cv.Clusters("id", protected=one, rules=two),
        lambda: cv.Range(0, 10).cut(one), lambda: cv.Categories(one), lambda: cv.Categories(several),
        lambda: cv.Binary(one, two), lambda: cv.Fill(one), lambda: cv.Budget(one, two),
        lambda: cv.Budget(1, two), lambda: cv.Study.from_dict(one), lambda: cv.Study.from_toml(one),
        lambda: Table.attach(one, trials.STUDY),
    )  # fmt: skip
    call = rng.choice(calls)
    return lambda: Answer([str(call())])


def _ledger(rng: random.Random, _folder: Path) -> Attempt:
    values = [nasty.value(rng) for _ in range(4)]
    how = rng.randrange(5)
    people = trials.people(rng, 16)

    def attempt() -> Answer:
        with cv.open_ledger(":memory:", create=True) as ledger:
            ledger.register("people", values[0] if how == 0 else trials.BUDGET)
            if how == 1:
                ledger.register(values[0], trials.BUDGET, rule=values[1], note=values[2])
            if how == 2:
                ledger.account(values[0])
            if how == 3:
                ledger.verify(values[0])
            if how == 4:
                given = {"ledger": rng.choice((ledger, values[1])), "dataset": values[0], "budget": values[2]}
                with cv.Session(people, trials.STUDY, **given) as session:
                    return Answer([str(session.remaining())])
            return Answer([str(ledger.datasets())])

    return attempt


def _reading(rng: random.Random, folder: Path) -> Attempt:
    north, model = documents.released()["north"], documents.released()["model"]
    one, two = nasty.value(rng), nasty.value(rng)
    result, effect = cv.results.Result.from_dict(north), cv.results.CateModel.from_dict(model)
    calls: tuple[Callable[[], Any], ...] = (
        lambda: result.interval(one), lambda: cv.pool(one), lambda: cv.pool([north, one]), lambda: cv.pool({"a": one}),
        lambda: cv.pool([north, north], method=one, level=two), lambda: effect.effect(one), lambda: effect.band(one,
        two),
        lambda: effect.interval({"age": [30], "smoker": [1], "site": ["north"]}, one),
        lambda: effect.effect({"age": one, "smoker": two, "site": ["north"]}), lambda: cv.results.Result.from_dict(one),
        lambda: cv.results.CateModel.load(one), lambda: cv.Policy.load(one), lambda: cv.SeededNoise(one),
    )  # fmt: skip
    call = rng.choice(calls)
    _ = folder
    return lambda: Answer([str(call())])


def _plan(rng: random.Random, _folder: Path) -> Attempt:
    given = {"rows": 40, "protects": "outcome", "epsilon": 1, "draws": 2, "method": "difference_in_means"}
    others = (
        "delta",
        "estimand",
        "level",
        "mean",
        "sd",
        "effect",
        "explained",
        "confounding",
        "share",
        "binary",
        "correlation",
        "covariates",
        "question",
        "sample",
        "seed",
        "settings",
    )
    made = _spoiled(rng, given, others)
    # A large number of studies takes its time by request; it is no fault.
    if isinstance(made["draws"], int) and not isinstance(made["draws"], bool) and made["draws"] > 50:
        made["draws"] = 2
    return lambda: Answer([str(cv.plan(trials.STUDY, **made))])


def _policy(rng: random.Random, _folder: Path) -> Attempt:
    people = trials.people(rng, 120)
    one, two = nasty.value(rng), nasty.value(rng)
    model = cv.results.CateModel.from_dict(documents.released()["model"])
    how = rng.randrange(5)

    def attempt() -> Answer:
        if how == 0:
            policy: Any = one
        elif how == 1:
            policy = cv.Policy.where(age=one)
        elif how == 2:
            policy = cv.Policy.from_model(model, threshold=one)
        else:
            policy = cv.Policy.where(age=(30, 60))
        if how == 4:
            asked = {
                "model": one if rng.random() < 0.3 else model,
                "bins": two,
                "protects": "record",
                "epsilon": 1,
            }
            return trials.ask(people, trials.STUDY, "targeting_curve", asked)
        asked = {"policy": policy, "cost": two if how == 3 else 0, "protects": "record", "epsilon": 1}
        return trials.ask(people, trials.STUDY, "policy_value", asked)

    return attempt
