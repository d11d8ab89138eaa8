"""The numbers of an answer, as text that is equal only where the numbers are equal to the bit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

import numpy as np

import counterveil as cv

LEVELS = (0.5, 0.9, 0.95, 0.999)
POINTS = {
    "a": np.array([0.05, 0.3, 0.5, 0.77, 1.0]),
    "b": np.array([0, 1, 0, 1, 1]),
    "c": np.array(["p", "q", "r", "p", "q"]),
}
Numbers = dict[str, list[str]]


def numbers(question: str, answer: Any) -> Numbers:
    """Return the numbers of an answer to a question, under short names."""
    return {name: _exact(value) for name, value in READERS[question](answer).items()}


def texts(answer: Any) -> dict[str, str]:
    """Return a digest of what an answer prints and one of its facts."""
    facts = json.dumps(answer.to_dict(), sort_keys=True, default=str)
    return {
        name: hashlib.sha256(text.encode()).hexdigest()
        for name, text in (("printed", str(answer)), ("facts", facts))
    }


def _exact(value: Any) -> list[str]:
    several = value if isinstance(value, list | tuple | np.ndarray) else [value]
    return [one if isinstance(one, str) else "none" if one is None else float(one).hex() for one in several]


def _effect(one: Any, prefix: str = "", several: bool = False, tested: bool = True) -> dict[str, Any]:
    error = one.std_error
    found = {"estimate": one.estimate, "std_error": [error.total, error.sampling, error.noise]}
    if tested:
        found["p"] = one.p_value
    for level in LEVELS:
        found[f"interval {level}"] = one.interval(level)
        if several:
            found[f"band {level}"] = one.interval(level, simultaneous=True)
    if several:
        found["adjusted p"] = one.adjusted_p_value
    return {prefix + name: value for name, value in found.items()}


def _effects(effects: Iterable[Any], prefix: str = "effect") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for place, one in enumerate(effects):
        found |= _effect(one, f"{prefix} {place} ", several=True)
    return found


def _spent(answer: Any) -> dict[str, Any]:
    return {"spent": [str(answer.spent.epsilon), str(answer.spent.delta)]}


def _ate(answer: Any) -> dict[str, Any]:
    return _spent(answer) | _effect(answer) | {"uncut interval 0.95": answer.untruncated_interval(0.95)}


def _table(answer: Any) -> dict[str, Any]:
    return _spent(answer) | _effects(answer.table)


def _arms(answer: Any) -> dict[str, Any]:
    found = _table(answer)
    for place, one in enumerate(answer.means):
        found |= _effect(one, f"mean {place} ", tested=False) | {f"mean {place} rows": one.size}
    return found


def _groups(answer: Any) -> dict[str, Any]:
    sizes = [size for one in answer.groups for size in (one.size, one.size_sd)]
    return _spent(answer) | _effects(answer.groups) | {"sizes": sizes}


def _periods(answer: Any) -> dict[str, Any]:
    return _table(answer) | {"pre-trend p": answer.pre_trend_p_value}


def _survival(answer: Any) -> dict[str, Any]:
    ratio, test = answer.restricted_mean_ratio, answer.log_rank
    found = _spent(answer) | _effects(answer.table) | {"tables": [*chain(*answer.tables.numbers)]}
    found |= {f"ratio {level}": ratio.interval(level) for level in LEVELS}
    found |= {"ratio": ratio.estimate, "log-rank": [test.statistic, test.p_value]}
    rows = answer.curves()
    return found | {"curves": [one[name] for one in rows for name in ("estimate", "low", "band_high")]}


def _overlap(answer: Any) -> dict[str, Any]:
    found = _spent(answer) | {"share": [answer.share, answer.share_sd]}
    found |= {"cells": [count for cell in answer.cells for count in (cell.treated, cell.control)]}
    return found | {f"interval {level}": [*chain(*answer.interval(level).values())] for level in LEVELS}


def _policy(answer: Any) -> dict[str, Any]:
    return _spent(answer) | _effects(answer.gains, "gain") | {"share": answer.share, "cost": answer.cost}


def _curve(answer: Any) -> dict[str, Any]:
    found = _spent(answer) | _effects(answer.gains, "gain")
    found |= {"shares": answer.shares, "thresholds": answer.thresholds}
    for name, one in (("qini", answer.qini), ("autoc", answer.autoc)):
        found |= {name: one.estimate, f"{name} std_error": [one.sampling_sd, one.noise_sd]}
        found |= {f"{name} interval {level}": one.interval(level) for level in LEVELS}
    return found


def _cate(answer: Any) -> dict[str, Any]:
    model = isinstance(answer, cv.results.CateModel)
    points = (POINTS,) if model else ()
    found = _spent(answer) | {"effects": answer.effect(*points)}
    if not model:
        found |= {"std_error": answer.std_error, "sampling": answer.sampling, "noise": answer.noise}
    for level in LEVELS:
        if not answer.heterogeneous if model else answer.one_effect:
            # One effect for all: its interval is that of the average.
            found |= {f"interval {level}": answer.table[0].interval(level)}
            continue
        found |= {f"interval {level}": np.concatenate(answer.interval(*points, level))}
        found |= {f"band {level}": np.concatenate(answer.band(*points, level))}
        if model:
            found |= {f"average {level}": answer.average(POINTS, level)}
    return found


def _moments(answer: Any) -> dict[str, Any]:
    found = _spent(answer) | {"matrix": np.ravel(answer.matrix), "basis": np.ravel(answer.basis)}
    found |= {"noise": np.ravel(answer.noise_sd)}
    for formula in ("y ~ t + a + c", "y ~ a + [b ~ c]"):
        fit = answer.regress(formula)
        found |= {formula: list(fit.params)}
        found |= {f"{formula} {level}": list(chain(*fit.interval(level).values())) for level in LEVELS}
    return found


def _pooled(answer: Any) -> dict[str, Any]:
    differ = answer.heterogeneity.to_dict()
    found = _spent(answer) | _effect(answer) | {"weights": [site.weight for site in answer.sites]}
    found |= {
        f"differing {name}": differ[name] for name in sorted(differ) if not isinstance(differ[name], str)
    }
    if answer.uncertainty.between_sites is not None:
        found |= {f"prediction {level}": answer.prediction_interval(level) for level in LEVELS}
    return found


def _planned(answer: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"without privacy": answer.without_privacy}
    for place, one in enumerate(answer.answers):
        parts = (one.half_width, one.noise, one.error, one.covered, one.found)
        found[f"answer {place}"] = [*parts, one.detectable(answer.level)]
        found[f"answer {place} budget"] = [str(one.budget.epsilon), str(one.budget.delta)]
    return found


READERS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "ate": _ate,
    "arms": _arms,
    "groups": _groups,
    "event_study": _periods,
    "outcomes": _table,
    "quantiles": _table,
    "survival": _survival,
    "policy_value": _policy,
    "targeting_curve": _curve,
    "cate": _cate,
    "moments": _moments,
    "overlap": _overlap,
    "pool": _pooled,
    "plan": _planned,
}
