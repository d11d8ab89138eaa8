"""`python -m experiments.third_level.forms [--draws N] [--forms ...]`: coverage of ratios, groups and functions.

Two designs with outcomes 0 or 1 that nothing was tuned on. Each draw has new treatments, outcomes and noise.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import expit

import counterveil as cv
from experiments.third_level.__main__ import FIRST_NOISE, LEVEL, NORMAL

SEED, ROWS = 61_000, 6_000
BUDGETS = (("1", "1e-6"), ("4", "1e-6"))
GROUPS = {"site": None, "age": (45, 60)}


class HeldOut:
    """Events of about this share, moved by a treatment whose effect differs by age; propensities from .15 to .85."""

    def __init__(self, share: float) -> None:
        rng = np.random.default_rng([SEED, round(1000 * share)])
        age, sex = rng.uniform(30, 75, ROWS), rng.integers(0, 2, ROWS)
        site, marker = rng.integers(0, 3, ROWS), np.clip(rng.normal(size=ROWS), -4, 4)
        self.covariates = {"age": age, "sex": sex, "site": site, "marker": marker}
        late = (age - 52.5) / 22.5
        self.propensity = expit(0.5 * late - 0.4 * sex + 0.35 * marker + 0.3 * (site == 2))
        base = np.log(share / (1 - share)) + 0.5 * late + 0.3 * marker + 0.2 * (site == 1)
        self.means = expit(base), expit(base + 0.45 + 0.5 * late)
        domains = {"age": cv.Range(30, 75), "sex": cv.Binary(), "site": cv.Categories([0, 1, 2])}
        domains["marker"] = cv.Range(-4, 4)
        self.study = cv.Study(
            cv.Treatment("t", control=0),
            cv.Outcome("y", (0, 1)),
            domains,
            assignment=cv.Observational(),
        )

    def drawn(self, number: int) -> dict[str, Any]:
        """Return the columns of one draw."""
        rng = np.random.default_rng([SEED, 7, number])
        treated = rng.uniform(size=ROWS) < self.propensity
        y = rng.uniform(size=ROWS) < np.where(treated, self.means[1], self.means[0])
        return {**self.covariates, "t": treated.astype(int), "y": y.astype(float)}

    def columns(self) -> np.ndarray:
        """Return white features: covariates, the squares of numbers."""
        age, marker, site = (self.covariates[name] for name in ("age", "marker", "site"))
        both = [age, self.covariates["sex"], site == 1, site == 2, marker, age**2, marker**2]
        return np.linalg.qr(np.column_stack([np.ones(ROWS), *both]))[0] * np.sqrt(ROWS)


# Whether the truth is in the interval, how long it is, the same of AIPW, and which effect of several it is.
Seen = tuple[bool, float, bool, float]


def ratios(design: HeldOut, columns: dict[str, Any], words: dict[str, Any]) -> Iterator[tuple[str, Seen]]:
    """Yield ratio and odds ratio on the scale of logarithms, with AIPW of both means."""
    found = cv.ate(columns, design.study, measure="ratio", **words)
    z, (m0, m1) = design.columns(), (float(own.mean()) for own in design.means)
    treated, y = columns["t"] == 1, columns["y"]
    means = [_mean(z, arm, y) for arm in (treated, ~treated)]
    for measure, truth, own, at in (
        ("ratio", m1 / m0, np.log, lambda m: 1 / m),
        (
            "odds_ratio",
            m1 * (1 - m0) / m0 / (1 - m1),
            lambda m: np.log(m / (1 - m)),
            lambda m: 1 / m / (1 - m),
        ),
    ):
        low, high = found.as_measure(measure).interval()
        plain = own(means[0][0]) - own(means[1][0])
        half = NORMAL * np.hypot(*(at(mean) * se for mean, se in means))
        length = np.log(high / low) if low > 0 else np.inf
        yield measure, (low <= truth <= high, length, abs(plain - np.log(truth)) <= half, 2 * half)


def _mean(z: np.ndarray, arm: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Return AIPW of the mean of one arm if everyone were in it, and its standard error given covariates."""
    score, left = _left(z, arm, y)
    return float(score.mean()), float(np.sqrt((left**2).sum()) / len(y))


def _propensity(z: np.ndarray, arm: np.ndarray) -> np.ndarray:
    b = np.zeros(z.shape[1])
    for _ in range(15):
        e = expit(z @ b)
        b = b + np.linalg.solve((z * (e * (1 - e))[:, None]).T @ z, z.T @ (arm - e))
    return np.asarray(expit(z @ b))


def groups(design: HeldOut, columns: dict[str, Any], words: dict[str, Any]) -> Iterator[tuple[str, Seen]]:
    """Yield every group's effect, and whether all simultaneous intervals cover, with AIPW of the same features."""
    found = cv.groups(columns, design.study, by=GROUPS, **words)
    z, treated, y = design.columns(), columns["t"] == 1, columns["y"]
    age, site = design.covariates["age"], design.covariates["site"]
    ends = [30, *GROUPS["age"], 76]
    inside = [(site == k) & (age >= a) & (age < b) for k in range(3) for a, b in pairwise(ends)]
    means = [_left(z, arm, y) for arm in (treated, ~treated)]
    together = []
    for one, rows in zip(found.groups, inside, strict=True):
        truth = float((design.means[1] - design.means[0])[rows].mean())
        plain = float((means[0][0] - means[1][0])[rows].mean())
        half = NORMAL * np.hypot(*(np.sqrt((left[rows] ** 2).sum()) / rows.sum() for _, left in means))
        low, high = one.interval()
        together.append(one.interval(simultaneous=True)[0] <= truth <= one.interval(simultaneous=True)[1])
        yield "groups", (low <= truth <= high, high - low, abs(plain - truth) <= half, 2 * half)
    yield "groups together", (all(together), 1.0, True, 1.0)


def _left(z: np.ndarray, arm: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return every row's AIPW score of the mean of one arm, and its part that varies given covariates."""
    e = np.clip(_propensity(z, arm), 0.02, 0.98)
    mean = z @ np.linalg.solve(z[arm].T @ z[arm], z[arm].T @ y[arm])
    return mean + arm / e * (y - mean), arm / e * (y - mean)


def functions(design: HeldOut, columns: dict[str, Any], words: dict[str, Any]) -> Iterator[tuple[str, Seen]]:
    """Yield effects at 40 rows of the study, each by itself, with a series of AIPW scores on the same functions."""
    model = cv.cate(columns, design.study, method="series", **words)
    some = {name: column[:: ROWS // 40] for name, column in design.covariates.items()}
    truth = (design.means[1] - design.means[0])[:: ROWS // 40]
    low, high = model.interval(some)
    z, treated, y = design.columns(), columns["t"] == 1, columns["y"]
    (one, left), (other, rest) = (_left(z, arm, y) for arm in (treated, ~treated))
    phi = model.basis.features({key: np.asarray(value, float) for key, value in design.covariates.items()})
    solve = np.linalg.pinv(phi)
    plain = (phi @ (solve @ (one - other)))[:: ROWS // 40]
    half = NORMAL * np.sqrt(((phi[:: ROWS // 40] @ solve) ** 2) @ (left - rest) ** 2)
    for row in range(len(truth)):
        seen = low[row] <= truth[row] <= high[row], high[row] - low[row]
        yield "functions", (*seen, abs(plain[row] - truth[row]) <= half[row], 2 * half[row])
    error = np.sqrt(np.mean((model.effect(some) - truth) ** 2))
    yield "functions: RMSE over that of one number", (True, error, True, float(truth.std()))


FORMS = {"ratios": ratios, "groups": groups, "functions": functions}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.third_level.forms")
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--forms", nargs="*", default=list(FORMS))
    given = parser.parse_args()
    print("| form | events | epsilon, delta | answers | covers | length over AIPW | AIPW covers |")
    print("|---|---|---|---|---|---|---|")
    for form in given.forms:
        for share in (0.3, 0.05):
            design = HeldOut(share)
            for epsilon, delta in BUDGETS:
                seen: dict[str, list[Seen]] = {}
                for draw in range(given.draws):
                    noise = cv.SeededNoise(FIRST_NOISE + draw)
                    words = {"protects": LEVEL, "epsilon": epsilon, "delta": delta, "noise": noise}
                    for name, one in FORMS[form](design, design.drawn(draw), words):
                        seen.setdefault(name, []).append(one)
                for name, rows in seen.items():
                    covers, length, plain, usual = map(np.array, zip(*rows, strict=True))
                    ratio = np.median(length) / np.median(usual)
                    head = f"| {name} | {share:.0%} | {epsilon}, {delta} | {len(rows)}"
                    print(f"{head} | {covers.mean():.3f} | {ratio:.2f} | {plain.mean():.3f} |", flush=True)


if __name__ == "__main__":
    main()
