"""The NCCTG lung data: error of private curves beside the exact ones, for several releases."""

from __future__ import annotations

from typing import Any

import numpy as np

import counterveil as cv
from counterveil.inference.survival.answers import answers_of
from counterveil.inference.survival.tables import NoisyTables, blocks_of
from experiments.runner import Row, Table

# Deaths and losses lie up to 1022 days; the horizon is a round number below.
HORIZON, CELLS = 1000, 12
DAYS = np.arange(0, HORIZON + 1)


def lung(epsilon: float, *, seeds: range) -> Row:
    """Return root mean squared errors over days 0 to 1000, means over draws; lifelines has the data."""
    from lifelines.datasets import load_lung

    frame = load_lung()
    people = {
        "sex": (frame["sex"] == 2).astype(int).to_numpy(),
        "time": frame["time"].to_numpy(dtype=np.float64),
        "status": frame["status"].to_numpy(dtype=np.int64),
    }
    return [epsilon, *np.mean([_errors(people, epsilon, seed) for seed in seeds], axis=0)]


def _errors(people: dict[str, np.ndarray], epsilon: float, seed: int) -> list[float]:
    study = cv.Study(
        cv.Treatment("sex", control=0),
        outcome=cv.TimeToEvent("time", "status", horizon=HORIZON, grid=CELLS),
        assignment=cv.Observational(),
    )
    given: dict[str, Any] = {"protects": "record", "method": "kaplan_meier", "noise": cv.SeededNoise(seed)}
    found = cv.survival(people, study, epsilon=epsilon, **given)
    exact = cv.survival(people, study, epsilon=1e9, **given)
    everyone = kaplan_meier(people["time"], people["status"])
    by_sex = []
    for code, arm in enumerate(("control", "treated")):
        own = people["sex"] == code
        curve = [found.survival(arm, time).estimate for time in found.times]
        by_sex.append(_error(curve, found.times, kaplan_meier(people["time"][own], people["status"][own])))
    return [
        _error(pooled(found.tables), found.times, everyone),
        float(np.mean(by_sex)),
        _error(pooled(exact.tables), found.times, everyone),
        _error(plain_release(exact.tables, epsilon, seed), found.times, everyone),
    ]


def pooled(tables: NoisyTables) -> np.ndarray:
    """Return the curve of both arms together at the ends of whole cells: of the sums of their tables."""
    both = np.array(tables.numbers).sum(axis=0)
    one = NoisyTables(
        numbers=(tuple(both), tuple(both)),
        form=tables.form,
        noise_sd=tables.noise_sd * 2**0.5,
        heavy=tables.heavy,
        totals=(2 * tables.totals[0],),
        edges=tables.edges,
        convention=tables.convention,
        shares=(),
        design=(1.0, 1.0),
        cut=tables.cut,
    )
    return answers_of(one).curves.shown[0][:: tables.cut]


def plain_release(tables: NoisyTables, epsilon: float, seed: int) -> np.ndarray:
    """Return the curve of people at risk and events by cell, each with Laplace noise of its own, at the same guarantee.

    A replaced person may be at risk in all cells before and in one afterwards, and moves two counts of events.
    """
    blocks, rng = blocks_of(tables), np.random.default_rng([seed, 7])
    scale = (CELLS - 1 + 2) / epsilon
    # Tables may cut cells into parts; what is compared with is by whole cells.
    events_by_cell = blocks.events.sum(axis=0).reshape(CELLS, -1).sum(axis=1)
    at_risk = blocks.at_risk.sum(axis=0)[:: tables.cut] + rng.laplace(0, scale, CELLS)
    events = events_by_cell + rng.laplace(0, scale, CELLS)
    hazards = np.clip(events / np.maximum(at_risk, 1.0), 0.0, 1.0)
    return np.append(1.0, np.cumprod(1 - hazards))


def kaplan_meier(time: np.ndarray, event: np.ndarray) -> np.ndarray:
    """Return the exact curve, day by day."""
    found, left = np.ones(len(DAYS)), 1.0
    for day in DAYS[1:]:
        died, risk = ((time == day) & (event == 1)).sum(), (time >= day).sum()
        left *= 1 - died / risk if risk else 1.0
        found[day] = left
    return found


def _error(curve: Any, times: tuple[float, ...], exact: np.ndarray) -> float:
    drawn = np.clip(np.interp(DAYS, times, curve), 0.0, 1.0)
    return float(np.sqrt(np.mean((drawn - exact) ** 2)))


TABLE = Table(
    columns=(
        "epsilon | everyone :.3f | by sex :.3f | cells alone, no noise :.3f | "
        "noisy people at risk and events :.3f"
    ),
    cells=[(1,), (10,)],
    row=lung,
    title=f"NCCTG lung data, {CELLS} cells of time, daily to {HORIZON}; means of {{draws}} draws",
    notes=lambda _: ["Published at epsilon 10, everyone: .04 (arXiv 2412.05164)."],
)
