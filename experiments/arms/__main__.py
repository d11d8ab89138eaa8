"""Several arms of private records: coverage, size, simultaneous coverage, and length beside Welch's intervals.

`python -m experiments.arms` prints the tables with 200 draws a row. `coverage` is of trials; `observational` has
coverage, size where no arm does anything, and errors and lengths beside AIPW without privacy, beside two arms at a time
for half of the budget each, and beside zero; `pairs` is of three outcomes that are private together with treatment.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

import counterveil as cv
from counterveil.numerics.propensity import fit_multinomial
from experiments.runner import Row, Table, run

# Draws whose pairs and permuted arms are looked at.
_FEW = 40


@dataclass(frozen=True)
class Design:
    """A trial of three arms: shares, and means of outcomes in [0, 1] that are beta or 0 and 1."""

    rows: int
    means: tuple[float, ...] = (0.4, 0.45, 0.5)
    shares: tuple[float, ...] = (1 / 3, 1 / 3, 1 / 3)
    events: bool = False
    size: float = 8.0  # of the beta distribution: larger ones vary less

    def draw(self, seed: int) -> dict[str, np.ndarray]:
        """Return one simulated study."""
        rng = np.random.default_rng([seed, self.rows])
        arm = rng.choice(len(self.shares), self.rows, p=self.shares)
        mean = np.array(self.means)[arm]
        y = (
            rng.random(self.rows) < mean
            if self.events
            else rng.beta(self.size * mean, self.size * (1 - mean))
        )
        return {"arm": arm, "y": y.astype(np.float64)}


DESIGNS = {
    "n = 500": Design(500),
    "n = 2,000": Design(2000),
    "n = 10,000": Design(10_000),
    "events, n = 2,000": Design(2000, events=True),
    "rare events, n = 3,000": Design(3000, (0.03, 0.03, 0.05), events=True),
    "5 % in one arm, n = 2,000": Design(2000, shares=(0.5, 0.45, 0.05), events=True),
    "skewed, n = 1,000": Design(1000, (0.05, 0.05, 0.08), size=3.0),
}


def coverage(name: str, *, seeds: range) -> Row:
    """Return coverage of both contrasts, of all pairs together, size, and length beside Welch's."""
    study = cv.Study(
        cv.Treatment("arm", arms=(0, 1, 2), reference=0), cv.Outcome("y", (0, 1)), assignment=cv.Trial()
    )
    design = DESIGNS[name]
    truth = np.array(design.means)[1:] - design.means[0]
    pairs = np.array([truth[0], truth[1], truth[1] - truth[0]])
    held, together, missed, lengths = [], [], [], []
    for seed in seeds:
        data = design.draw(seed)
        found = _asked(study, data, seed)
        ends = np.array(list(found.interval().values()))
        held.append((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
        if len(together) < _FEW:
            every = np.array([one.interval(simultaneous=True) for one in found.pairwise()])
            together.append(np.all((every[:, 0] <= pairs) & (pairs <= every[:, 1])))
            null = data | {"arm": np.random.default_rng(seed).permutation(data["arm"])}
            missed.append(
                [not low <= 0 <= high for low, high in _asked(study, null, seed).interval().values()]
            )
        errors = [data["y"][data["arm"] == k].var() / (data["arm"] == k).sum() for k in range(3)]
        lengths.append((ends[:, 1] - ends[:, 0]) / 3.92 / np.sqrt(np.array(errors[1:]) + errors[0]))
    shares = [*np.mean(held, axis=0), np.mean(together), np.mean(missed)]
    return [name, *shares, *np.median(lengths, axis=0)]


@dataclass(frozen=True)
class Observed:
    """An observational study of three arms: how likely the third is, and what outcomes are."""

    rows: int
    numbers: int
    third: float = 0.0  # of its logit
    effects: tuple[float, float] = (0.4, 0.8)
    event: float | None = None  # logit of an event in the reference arm; None for numbers in [0, 10]

    def study(self) -> cv.Study:
        """Return the declaration: numbers in [0, 1], a truth value and three labels."""
        covariates = {f"x{j}": cv.Range(0, 1) for j in range(self.numbers)}
        covariates |= {"old": cv.Categories([0, 1]), "site": cv.Categories(["a", "b", "c"])}
        ends = (0, 10) if self.event is None else (0, 1)
        return cv.Study(
            cv.Treatment("arm", arms=(0, 1, 2), reference=0),
            cv.Outcome("y", ends),
            covariates,
            assignment=cv.Observational(),
        )

    def draw(self, seed: int, null: bool) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
        """Return one simulated study, its covariates as columns, and the effects of both arms on these people."""
        rng = np.random.default_rng([seed, self.rows, self.numbers])
        x, old = rng.beta(2, 3, (self.rows, self.numbers)), rng.random(self.rows) < 0.4
        site = rng.choice(3, self.rows, p=[0.5, 0.3, 0.2])
        z = np.column_stack([x, old, site == 1, site == 2])
        centred = z - z.mean(axis=0)
        one, two = (centred @ np.cos(np.arange(z.shape[1]) * step) for step in (1.0, 2.3))
        odds = np.exp(np.column_stack([np.zeros(self.rows), one, two + self.third]))
        chance = (odds / odds.sum(axis=1, keepdims=True)).cumsum(axis=1)
        arm = np.minimum((rng.random(self.rows)[:, None] > chance).sum(axis=1), 2)
        line = 1.2 * centred @ np.sin(1 + np.arange(z.shape[1]))
        effects = np.array([0.0, *([0.0, 0.0] if null else self.effects)])
        if self.event is None:
            means = 5 + np.column_stack([line] * 3) + effects * (1 + 0.5 * centred[:, :1])
            y = np.clip(means[np.arange(self.rows), arm] + rng.normal(0, 1, self.rows), 0, 10)
        else:
            means = expit(self.event + line[:, None] / 2 + effects)
            y = (rng.random(self.rows) < means[np.arange(self.rows), arm]).astype(np.float64)
        data = {"arm": arm, "y": y, "old": old.astype(int), "site": np.array(list("abc"))[site]}
        data |= {f"x{j}": x[:, j] for j in range(self.numbers)}
        return data, z, (means[:, 1:] - means[:, :1]).mean(axis=0)


OBSERVED = {
    "numbers, n = 5,000": Observed(5000, 4),
    "events (25%), n = 10,000": Observed(10_000, 6, event=-1.1),
    "5% in one arm, events (3%), n = 20,000": Observed(20_000, 3, third=-2.4, effects=(0.3, 0.7), event=-3.5),
}


def observational(name: str, delta: float, *, seeds: range) -> Row:
    """Return coverage, size, root mean squared errors and lengths of one observational study."""
    label = [name, "pure" if delta == 0 else "delta 1e-6"]
    try:
        return [*label, *_figures(OBSERVED[name], delta, seeds)]
    except cv.errors.CounterveilError as refused:
        return [*label, f"refused ({refused.code})"]


def _figures(design: Observed, delta: float, seeds: range) -> Row:
    held, missed, errors, lengths, study = [], [], [], [], design.study()
    words = {"protects": "record", "delta": delta}
    for seed in seeds:
        data, z, truth = design.draw(seed, null=False)
        own, half = aipw(data, z)
        ends = np.array(list(_ask(study, data, seed, words).interval().values()))
        held.append((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
        errors.append([ends.mean(axis=1) - truth, own - truth, np.full(2, np.nan), truth])
        lengths.append([np.diff(ends)[:, 0] / 2 / half, np.full(2, np.nan)])
        if len(held) <= _FEW:
            pairs = np.array([two_arms(design, data, arm, seed, words) for arm in (1, 2)])
            errors[-1][2], lengths[-1][1] = pairs.mean(axis=1) - truth, np.diff(pairs)[:, 0] / 2 / half
        null, _, nothing = design.draw(seed + 10_000, null=True)
        ends = np.array(list(_ask(study, null, seed, words).interval().values()))
        missed.append((nothing < ends[:, 0]) | (ends[:, 1] < nothing))
    rmse, length = np.sqrt(np.nanmean(np.square(errors), axis=0)), np.nanmedian(lengths, axis=0)
    others = [" / ".join(f"{one:.3g}" for one in both) for both in rmse[1:]]
    pair = " / ".join(f"{one:.2f}" for one in length[1])
    return [*np.mean(held, axis=0), np.mean(missed), *rmse[0], *others, *length[0], pair]


def aipw(data: dict[str, np.ndarray], z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return all effects without privacy, from lines and a multinomial propensity, and their half-widths."""
    arm, y, u, scores = data["arm"], data["y"], np.column_stack([np.ones(len(z)), z]), []
    arms = int(arm.max()) + 1
    chance = fit_multinomial(z, arm, arms, 1e-6).scores
    for k in range(arms):
        own = arm == k
        left = y - (line := u @ np.linalg.lstsq(u[own], y[own], rcond=None)[0])
        scores.append(line + own * left / chance[:, k])
    found = np.array(scores[1:]) - scores[0]
    return found.mean(axis=1), 1.96 * found.std(axis=1) / np.sqrt(len(y))


def two_arms(design: Observed, data: dict, arm: int, seed: int, words: dict) -> tuple[float, float]:
    """Return the interval of one arm beside the reference for half of the budget, others dropped."""
    whole = design.study()
    study = cv.Study(
        cv.Treatment("arm", treated=arm, control=0, others="drop"),
        cv.Outcome("y", whole.outcome_range),
        whole.covariates,
        assignment=cv.Observational(),
    )
    half = words | {"epsilon": "1/2", "delta": words["delta"] / 2}
    return cv.ate(data, study, noise=cv.SeededNoise(seed), **half).interval()


def _ask(study: cv.Study, data: dict, seed: int, words: dict) -> cv.results.ArmsResult:
    return cv.arms(data, study, epsilon=1, noise=cv.SeededNoise(seed), **words)


RANGES = {"score": (0, 10), "event": (0, 1), "rare": (0, 1)}
_PAIRS = {"protects": "treatment and outcome"}


STUDY = cv.Study(
    cv.Treatment("t", control=0),
    outcome=cv.Outcomes(RANGES),
    covariates={"x": cv.Range(0, 1), "z": cv.Range(0, 1), "old": cv.Categories([0, 1])},
    assignment=cv.Observational(),
)


def pairs(rows: int, epsilon: int, delta: float, *, seeds: range) -> list[Row]:
    """Return coverage, size and lengths of three outcomes whose treatments are private too, covariates being public."""
    found, table = [_three(STUDY, rows, epsilon, delta, seed, seeds[:_FEW]) for seed in seeds], []
    for place, name in enumerate(RANGES):
        held, theirs, missed, also, length, alone, error, truth = np.array(found)[:, :, place].T
        shares = f"{held.mean():.3f}, {theirs.mean():.3f}", f"{missed.mean():.3f}, {also.mean():.3f}"
        rmse = np.sqrt((error**2).mean()), np.sqrt((truth**2).mean())
        kind = "pure" if delta == 0 else "delta 1e-6"
        table.append([rows, epsilon, kind, name, *shares, np.median(length), np.nanmedian(alone), *rmse])
    return table


def _three(study: cv.Study, rows: int, epsilon: int, delta: float, seed: int, few: range) -> list[np.ndarray]:
    words = _PAIRS | {"delta": delta, "noise": cv.SeededNoise(seed)}
    (data, z, truth), (null, w, nothing) = (_pairs_drawn(rows, one, seed) for one in (1.0, 0.0))
    ends = np.array(list(cv.outcomes(data, study, epsilon=epsilon, **words).interval().values()))
    none = np.array(list(cv.outcomes(null, study, epsilon=epsilon, **words).interval().values()))
    alone = np.full(3, np.nan)
    plain, also = (
        np.array([np.ravel(aipw({"arm": drawn["t"], "y": drawn[name]}, own)) for name in RANGES]).T
        for drawn, own in ((data, z), (null, w))
    )
    for place, (name, ends_of) in enumerate(RANGES.items()):
        if seed in few:
            own = cv.Study(
                cv.Treatment("t", control=0),
                cv.Outcome(name, ends_of),
                study.covariates,
                assignment=cv.Observational(),
            )
            part = words | {"epsilon": f"{epsilon}/3", "delta": delta / 3}
            low, high = cv.ate(data, own, **part).interval()
            alone[place] = (high - low) / 2 / plain[1, place]
    held = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
    missed = (nothing < none[:, 0]) | (none[:, 1] < nothing)
    theirs, wrong = np.abs(plain[0] - truth) <= plain[1], np.abs(also[0]) > also[1]
    length, error = np.diff(ends)[:, 0] / 2 / plain[1], ends.mean(axis=1) - truth
    return [held, theirs, missed, wrong, length, alone, error, truth]


def _pairs_drawn(rows: int, effect: float, seed: int) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """Return people with three outcomes, their covariates as columns, and the effects on these people."""
    rng = np.random.default_rng([seed, rows, int(effect)])
    x, w, old = rng.beta(2, 3, rows), rng.beta(3, 2, rows), rng.random(rows) < 0.4
    z = np.column_stack([x, w, old]) - (0.4, 0.6, 0.4)
    t = (rng.random(rows) < expit(z @ (2.0, -1.5, 0.7))).astype(int)
    event, rare = (
        [expit(level + z @ slopes + effect * size * arm) for arm in (0, 1)]
        for level, slopes, size in ((-1.1, (1.5, 0.5, -0.4), 0.4), (-3.4, (1.0, -1.0, 0.8), 0.5))
    )
    score = np.clip(5 + z @ (2.0, 1.5, -0.8) + 0.5 * effect * t + rng.normal(0, 1, rows), 0, 10)
    drawn = [(rng.random(rows) < np.where(t == 1, two, one)).astype(int) for one, two in (event, rare)]
    truth = np.array([0.5 * effect, *((two - one).mean() for one, two in (event, rare))])
    names = {"t": t, "x": x, "z": w, "old": old.astype(int), "score": score}
    return names | {"event": drawn[0], "rare": drawn[1]}, z, truth


def _asked(study: cv.Study, data: dict[str, np.ndarray], seed: int) -> cv.results.ArmsResult:
    return cv.arms(data, study, protects="record", epsilon=1, noise=cv.SeededNoise(seed))


TABLES = {
    "coverage": Table(
        columns=(
            "design | 1 - 0 :.3f | 2 - 0 :.3f | all pairs :.3f | size :.3f | length, 1 - 0 :.3f | 2 - 0 :.3f"
        ),
        cells=[(name,) for name in DESIGNS],
        row=coverage,
    ),
    "observational": Table(
        columns=(
            "study | budget | 1 - 0 :.3f | 2 - 0 :.3f | size :.3f | RMSE, 1 - 0 :.3g | 2 - 0 :.3g | "
            "AIPW | two at a time | zero | length, 1 - 0 :.2f | 2 - 0 :.2f | two at a time"
        ),
        cells=[(name, delta) for name in OBSERVED for delta in (1e-6, 0)],
        row=observational,
    ),
    "pairs": Table(
        columns=(
            "n :, | epsilon | budget | outcome | coverage, AIPW | size, AIPW | length :.2f | "
            "one at a time :.2f | RMSE :.3g | zero :.3g"
        ),
        cells=[(*size, delta) for size in ((4000, 4), (20_000, 1)) for delta in (1e-6, 0)],
        row=pairs,
    ),
}

if __name__ == "__main__":
    run(__doc__, TABLES)
