"""One question of the sweep: asked of an account of its own, with everything asked that its answer gives for free."""

from __future__ import annotations

import signal
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from math import isnan
from typing import Any

import numpy as np
from tools.answer_sweep.ways import POINTS, Asked, data_for, study

import counterveil as cv
from counterveil.errors import CounterveilError
from counterveil.session import SeededNoise

LEVELS = (0.5, 0.999999)
# The largest bases of effects as functions take ten seconds, in one decomposition of public numbers.
MOST_SECONDS = 20.0


@dataclass(frozen=True)
class Outcome:
    """How one question went: a code where it was refused, a fault where it was charged and failed."""

    charged: bool
    refused: str | None
    fault: str | None
    seconds: float
    answer: Any = None


def run(asked: Asked, rows: int, kind: str, budget: dict[str, str], seed: int = 1) -> Outcome:
    """Return how one question went, asked of an account of its own."""
    began = time.process_time()
    signal.signal(signal.SIGPROF, _too_long)
    signal.setitimer(signal.ITIMER_PROF, 2 * MOST_SECONDS)
    whole = cv.Budget("1e9", "1e-2")
    session: cv.Session | None = None
    refused = fault = answer = None
    try:
        declared = study(**asked.declared)
        session = cv.Session(data_for(asked, rows, kind), declared, budget=whole, noise=SeededNoise(seed))
        answer = asked.ask(session, **budget)
        finish(answer)
    except CounterveilError as error:
        refused = error.code
    except Exception:
        fault = traceback.format_exc(limit=-3)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    charged = session is not None and session.account().requests > 0
    return Outcome(charged, refused, fault, time.process_time() - began, answer)


def _too_long(*_: object) -> None:
    raise TimeoutError(f"more than {2 * MOST_SECONDS} s of CPU")


def finish(answer: Any) -> None:
    """Ask everything that is free of an answer; intervals must be numbers in order."""
    str(answer)
    points = (POINTS,) if isinstance(answer, cv.results.CateModel) else ()
    found: list[Any] = []
    # One effect for all has no intervals for people (CV-P528): that of the average is in its table.
    if not getattr(answer, "one_effect", points and not answer.heterogeneous):
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


def trouble(found: Outcome) -> str | None:
    """Return what is wrong with how a question went, None where nothing is."""
    if found.fault is not None:
        return f"{'CHARGED, ' if found.charged else ''}fault:\n{found.fault}"
    if found.refused is not None and found.charged:
        return f"refused with {found.refused} after it was charged"
    return f"{found.seconds:.1f} s of CPU" if found.seconds > MOST_SECONDS else None
