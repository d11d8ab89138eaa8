"""Released results as facts and files: read back, pooled, asked for intervals, or used as rules."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

from tools.fuzzing import nasty, trials
from tools.fuzzing.judging import Answer, Attempt, BrokenRuleError

import counterveil as cv

_WIDTH = trials.RANGE[1] - trials.RANGE[0]


@cache
def released() -> dict[str, dict[str, Any]]:
    """Return the facts of one result of each kind."""
    data = trials.people(random.Random(1), 400)

    def asked(seed: int) -> dict[str, Any]:
        return {"epsilon": 5, "noise": cv.SeededNoise(seed)}

    outcome = {"protects": "outcome"}
    model = cv.cate(data, trials.STUDY, protects="record", delta="1e-6", **asked(4))
    above = trials.STUDY._changed(outcome_range=(Fraction(0), Fraction(trials.RANGE[1])))
    ratio = outcome | {"method": "difference_in_means", "measure": "ratio"}
    return {
        "one ratio": cv.ate(data, above, **ratio, **asked(6)).to_dict(),
        "other ratio": cv.ate(data, above, **ratio, **asked(7)).to_dict(),
        "north": cv.ate(data, trials.STUDY, method="difference_in_means", **outcome, **asked(1)).to_dict(),
        "south": cv.ate(data, trials.STUDY, method="difference_in_means", **outcome, **asked(2)).to_dict(),
        "strata": cv.ate(data, trials.STUDY, method="stratified", **outcome, **asked(3)).to_dict(),
        "model": model.to_dict(),
        "groups": cv.groups(data, trials.STUDY, by=["smoker"], **outcome, **asked(5)).to_dict(),
        "policy": cv.Policy.where(age=(30, 60)).to_dict(),
    }


def prepare(_folder: Path) -> None:
    """Make the results once, before anything is timed."""
    released()


def make(rng: random.Random, folder: Path) -> Attempt:
    """Return the reading of a broken result."""
    kind = rng.random()
    if kind < 0.45:
        return _pooled(rng, folder)
    reader: Callable[[Any], Any]
    name, reader = rng.choice(
        (
            ("north", cv.results.Result.from_dict),
            ("strata", cv.results.Result.from_dict),
            ("groups", cv.results.GroupsResult.from_dict),
            ("model", cv.results.CateModel.from_dict),
            ("policy", cv.Policy.from_dict),
        )
    )
    facts = nasty.broken_facts(rng, released()[name], plain=rng.random() < 0.8)
    if name in ("model", "policy") and rng.random() < 0.6:
        path = folder / "kept.json"
        _write(path, _text(rng, facts))
        load = cv.results.CateModel.load if name == "model" else cv.Policy.load
        return lambda: _shown(load(path))
    return lambda: _shown(reader(facts))


def _text(rng: random.Random, facts: Any) -> str:
    try:
        whole = json.dumps(facts, default=str)
    except (TypeError, ValueError, RecursionError):
        whole = str(rng.choice(nasty.TEXTS))
    return nasty.broken_text(rng, whole) if rng.random() < 0.4 else whole


def _write(path: Path, text: str) -> None:
    path.write_bytes(text.encode("utf-8", "surrogatepass"))


def _shown(result: Any) -> Answer:
    """Return every text of what was read, and use it once."""
    if isinstance(result, cv.results.CateModel):
        people = trials.people(random.Random(2), 5)
        result.effect(people)
        result.interval(people, 0.9)
    elif isinstance(result, cv.results.Result):
        result.interval(0.9)
    return Answer([str(result), json.dumps(result.to_dict(), default=str)])


def _pooled(rng: random.Random, folder: Path) -> Attempt:
    """Return the pooling of two or three results, one of them broken or forged."""
    names = ["north", "south", *(["strata"] if rng.random() < 0.2 else [])]
    if rng.random() < 0.3:
        names = ["one ratio", "other ratio"]
    given: list[Any] = [released()[name] for name in names]
    at = rng.randrange(len(given))
    given[at] = _forged(rng, given[at]) if rng.random() < 0.5 else nasty.broken_facts(rng, given[at])
    if rng.random() < 0.4:
        paths = [folder / f"{name}.json" for name in names]
        for place, path in enumerate(paths):
            _write(path, _text(rng, given[place]) if place == at else json.dumps(given[place]))
        given = list(paths)
    method = rng.choice(("mvagg", "ivw", "all", "largest", "random_effects"))

    def attempt() -> Answer:
        result = cv.pool(given, method=method)
        ends = result.interval(0.9)
        if not isinstance(result, cv.results.MeasureResult):
            _inside(result.estimate, "estimate")
            for end in ends:
                _inside(end, "end of an interval")
        return Answer([str(result), json.dumps(result.to_dict())])

    return attempt


def _forged(rng: random.Random, facts: dict[str, Any]) -> dict[str, Any]:
    """Return facts in which numbers are others of the same kind: what a hostile site would send."""
    facts = json.loads(json.dumps(facts))
    for _ in range(rng.choice((1, 2, 4))):
        holder, key = _leaf(rng, facts)
        if isinstance(holder[key], bool) or not isinstance(holder[key], int | float | str):
            continue
        number = rng.choice((0, -1, 1e-300, 1e300, 1e9, -5.0, 50.0, 1e-12, 7, -(10**20), holder[key]))
        holder[key] = str(number) if isinstance(holder[key], str) else number
    return facts


def _leaf(rng: random.Random, facts: Any) -> tuple[Any, Any]:
    key = rng.choice(list(facts)) if isinstance(facts, dict) else rng.randrange(len(facts))
    inner = facts[key]
    return _leaf(rng, inner) if isinstance(inner, dict | list) and inner else (facts, key)


def _inside(value: float, what: str) -> None:
    if not (math.isfinite(value) and abs(value) <= _WIDTH * (1 + 1e-9)):
        raise BrokenRuleError(f"pooled {what} {value!r} outside the range of the outcome")
