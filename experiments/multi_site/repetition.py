"""One repetition of a panel: sites answer at every budget, and each way of pooling makes one number of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch
from zlib import crc32

import numpy as np

import counterveil as cv
from counterveil.errors import DataError
from counterveil.inference import Uncertainty, pooling_weights
from experiments.multi_site.panels import ALPHAS, Panel, Rows, Source, cut, load
from experiments.multi_site.published import Answer, Matching, mean_difference, private_mean_difference

AGGREGATIONS = {"MVAgg": "mvagg", "AggAll": "all", "AggLargest": "largest", "IVW": "ivw"}
# Room for every question of an experiment: what one site's people lose is one epsilon, not their sum.
_ROOM = cv.Budget(10**6)

# Estimates by form, way of pooling and alpha, in ranges; keys of alphas as text.
Estimates = dict[str, dict[str, dict[str, float]]]


def reference(panel: Panel, repetition: int) -> float:
    """Return what errors are measured from: the true effect of Synth, else all rows without privacy."""
    source = load(panel.study, repetition)
    if source.truth is not None:
        return source.truth
    return Matching(source.rows, source.strata).effect if source.strata else mean_difference(source.rows)


def repeat(panel: Panel, repetition: int) -> Estimates:
    """Return the pooled estimates of every form, way of pooling and alpha."""
    # Every panel cuts and draws for itself.
    rng = np.random.default_rng([crc32(panel.name.encode()), repetition])
    source = load(panel.study, repetition)
    sites = cut(panel, source, rng)
    sizes = np.array([len(site.outcome) for site in sites], dtype=np.float64)
    found: Estimates = {}
    for form, answers in _published(panel, source, sites, rng).items():
        found[form] = {name: {} for name in AGGREGATIONS}
        for alpha in ALPHAS:
            sent = [answers[j, epsilon] for j, epsilon in enumerate(panel.epsilons(alpha))]
            for name, method in AGGREGATIONS.items():
                found[form][name][str(alpha)] = _pooled(sent, sizes, method)
    found |= _ours(panel, source, sites, rng)
    plain = [
        Matching(site, source.strata).effect if source.strata else mean_difference(site) for site in sites
    ]
    found["without privacy"] = {"AggAll": dict.fromkeys(map(str, ALPHAS), float(sizes @ plain / sizes.sum()))}
    found["zero"] = {"": dict.fromkeys(map(str, ALPHAS), 0.0)}
    return found


def _asked(panel: Panel) -> list[tuple[int, float]]:
    """Return every (site, epsilon) of the panel once: the first site answers once for all alphas."""
    return sorted({(j, e) for alpha in ALPHAS for j, e in enumerate(panel.epsilons(alpha))})


def _published(
    panel: Panel, source: Source, sites: list[Rows], rng: np.random.Generator
) -> dict[str, dict[tuple[int, float], Answer]]:
    if not source.strata:
        return {
            "published": {(j, e): private_mean_difference(sites[j], e, rng) for j, e in _asked(panel)},
        }
    matchings = [Matching(site, source.strata) for site in sites]
    return {
        "published, global": {(j, e): matchings[j].constant(e, rng) for j, e in _asked(panel)},
        "published, smooth": {(j, e): matchings[j].smooth(e, rng) for j, e in _asked(panel)},
    }


def _pooled(sent: list[Answer], sizes: np.ndarray, method: str) -> float:
    variances = np.array([answer.variance for answer in sent])
    return float(pooling_weights(method, sizes, variances) @ [answer.estimate for answer in sent])


@contextmanager
def _without_intervals() -> Iterator[None]:
    """Switch off the search for intervals, which takes most of the time and is not looked at here."""
    nothing = {"half_width": lambda *_: 0.0, "p_value": lambda *_: 1.0}
    with patch.multiple(Uncertainty, **nothing):
        yield


def _ours(panel: Panel, source: Source, sites: list[Rows], rng: np.random.Generator) -> Estimates:
    forms = {"ours": "stratified", "difference in means": "trial"}
    unit = "record"
    if not source.strata:
        forms, unit = {"ours": "difference_in_means"}, "outcome"
    elif source.study.randomised:
        # A trial that is matched as if it were none: what is chosen for it as it is declared.
        forms["auto"] = "auto"
    width = float(source.study.outcome_bounds.width)
    results: dict[tuple[str, int, float], cv.results.Result] = {}
    for j, site in enumerate(sites):
        asked = [(form, e) for form in forms for k, e in _asked(panel) if k == j]
        noise = cv.SeededNoise(int(rng.integers(2**62)))
        try:
            whole = cv.Curator(site.frame, source.study, budget=_ROOM, noise=noise)
        except DataError:
            continue  # an arm of one person: this site gives no result, the others are pooled
        with _without_intervals(), whole as curator:
            for form, e in asked:
                settings = cv.settings.Trial("none", "pooled") if forms[form] == "trial" else None
                results[form, j, e] = curator.ate(
                    protects=unit, epsilon=e, method=forms[form], settings=settings
                )
    found: Estimates = {}
    for form in forms:
        # What is there for comparison is pooled in the default way.
        ways = AGGREGATIONS if form == "ours" else {"MVAgg": "mvagg"}
        found[form] = {name: {} for name in ways}
        for alpha in ALPHAS:
            asked = [(form, j, e) for j, e in enumerate(panel.epsilons(alpha))]
            sent = [results[key] for key in asked if key in results]
            for name, method in ways.items():
                answer = cv.pool(sent, method=method) if len(sent) > 1 else sent[0]
                found[form][name][str(alpha)] = answer.estimate / width
    return found
