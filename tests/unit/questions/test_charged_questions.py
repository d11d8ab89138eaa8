"""Once a question is charged it is answered, whatever its parameters; its answer prints and has intervals in order."""

import traceback
from dataclasses import dataclass
from itertools import chain, product
from math import isnan
from typing import Any

import numpy as np
import pytest
from tests.thinned import thinned
from tools.golden.ways import KINDS, POINTS, data_for, study, ways

import counterveil as cv
from counterveil.errors import CounterveilError
from counterveil.session import SeededNoise

ROWS = (4, 5, 8, 20, 200)
EPSILONS = ("1e-12", "1e-8", "1e-4", "0.001", "0.1", "1", "50", "1e4")
DELTAS = ("0", "1e-6", "1e-100")
LEVELS = (0.5, 0.999999)
WAYS = ways()


@dataclass(frozen=True)
class Outcome:
    """How one question went: a code where it was refused, a fault where it failed."""

    charged: bool
    refused: str | None
    fault: str | None
    answer: Any


def run(asked, rows, kind, epsilon, delta):
    """Return how one question went, asked of an account of its own."""
    session = refused = fault = answer = None
    try:
        declared = study(**asked.declared)
        whole = cv.Budget("1e9", "1e-2")
        session = cv.Session(data_for(asked, rows, kind), declared, budget=whole, noise=SeededNoise(1))
        answer = asked.ask(session, epsilon=epsilon, delta=delta)
        use_everything(answer)
    except CounterveilError as error:
        refused = error.code
    except Exception:
        fault = traceback.format_exc(limit=-3)
    charged = session is not None and session.account().requests > 0
    return Outcome(charged, refused, fault, answer)


def use_everything(answer):
    """Ask everything that is free of an answer; intervals must be numbers in order."""
    assert str(answer)
    points = (POINTS,) if isinstance(answer, cv.results.CateModel) else ()
    # One effect for all has no intervals for people (CV-P528): that of the average is in its table.
    if getattr(answer, "one_effect", points and not answer.heterogeneous):
        intervals = [[effect.interval(level) for effect in answer.table] for level in LEVELS]
    else:
        intervals = [answer.interval(*points, level) for level in LEVELS]
        if hasattr(answer, "band"):
            intervals += [answer.band(*points, level) for level in LEVELS]
    if isinstance(answer, cv.results.Moments):
        fits = [answer.regress(formula) for formula in ("y ~ t + a + c", "y ~ a + [b ~ c]")]
        intervals += [fit.interval(level) for fit in fits for level in LEVELS]
        assert all(str(fit) and fit.tidy() and fit.to_dict() for fit in fits)
    for low, high in chain.from_iterable(map(ends, intervals)):
        assert not isnan(low)
        assert not isnan(high)
        assert low <= high
    if not points:
        answer.tidy()
    assert type(answer).from_dict(answer.to_dict()) is not None


def ends(interval):
    """Yield the pairs of ends of an interval, of a table of them, or of arrays of them."""
    if isinstance(interval, dict):
        yield from interval.values()
    elif isinstance(interval, list):
        yield from interval
    else:
        low, high = (np.atleast_1d(end) for end in interval)
        yield from zip(low.tolist(), high.tolist(), strict=True)


def assert_answered(name, rows, kind, epsilon, delta):
    outcome = run(WAYS[name], rows, kind, epsilon, delta)
    assert outcome.fault is None, outcome.fault
    assert outcome.answer is not None or not outcome.charged, outcome.refused


# Kernel smoothing over all pairs of rows takes seconds whatever the budget: only the slow test asks it.
QUICK = [name for name in WAYS if "influence" not in name]
EDGES = list(product(ROWS, EPSILONS, DELTAS[:2], KINDS))
# Prime to the number of edges, so that every way is asked at another edge.
STRIDE = 37


@pytest.mark.parametrize("name", thinned(QUICK, *QUICK[::2]))
def test_a_charged_question_is_answered(name):
    rows, epsilon, delta, kind = EDGES[STRIDE * QUICK.index(name) % len(EDGES)]
    assert_answered(name, rows, kind, epsilon, delta)


# Every way at every number of rows and budget, then with every kind of data at two budgets: every eleventh of them.
EVERY_WAY = [
    *product(WAYS, ROWS, KINDS[:1], EPSILONS, DELTAS),
    *product(WAYS, (8, 200), KINDS[1:], ("1e-4", "1"), DELTAS[:2]),
][::11]


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_a_charged_question_is_answered_at_every_edge(way):
    for name, *edge in EVERY_WAY:
        if name == way:
            assert_answered(name, *edge)


def test_a_fault_after_the_charge_is_noticed():
    asked = WAYS["difference_in_means outcome ATE"]

    def fails(session, **budget):
        session.ate(protects="outcome", method="difference_in_means", **budget)
        raise ZeroDivisionError

    outcome = run(type(asked)(asked.declared, fails), 20, "usual", "1", "0")
    assert outcome.charged
    assert "ZeroDivisionError" in outcome.fault
