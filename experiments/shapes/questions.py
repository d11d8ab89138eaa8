"""Designs of other questions, drawn at random: `python -m experiments.shapes.questions [--seed 1] [--only arms]`.

Every number of an answer is judged apart. A cell in which one misses in the first replications is drawn again with new
seeds, and judged by these alone.
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit, logit
from scipy.stats import binom
from tools.loose_study import study_of

import counterveil as cv
from counterveil.errors import CounterveilError
from experiments.shapes.search import AGAIN, FIRST, REFUSED, SEEMS, SHAPES, SURE

Cell = dict[str, Any]
Ends = dict[str, tuple[float, float]]
FOUND = "quantiles on a found grid"
SHARES, QUERY = (0.25, 0.5, 0.75), (0.5, 1)
MANY, HORIZON, CAUSE = 400_000, 1.0, 0.6
# Intervals may end at the truth itself, as those of whole numbers do.
ROUNDING = 1e-9
CHOICES: dict[str, tuple[Any, ...]] = {
    "level": ("outcome", "record", "record", "treatment and outcome"),
    "rows": (500, 2_000, 8_000),
    "epsilon": ("0.5", "1", "2", "8"),
    "delta": ("0", "0", "1e-6"),
    "trial": (True, False),
    "share": ("0.5", "0.5", "0.2"),
    "steep": (0.5, 1.5),
    "columns": (1, 3, 6),
    "shape": tuple(range(len(SHAPES))),
    "effect": (0, 1),
    "varies": (0, 0.5),
    "outcome_range": (1, 1, 10),
    "rate": (0.1, 1, 3),
    "weibull": (1, 1, 2),
    "followed": (1.2, 2, 1e9),
    "whole": (False, False, True),
}


class People:
    """People of one draw: covariates, a group of three, arms 0 to 2, and what would happen to them in each."""

    def __init__(self, cell: Cell, seed: Any, rows: int) -> None:
        rng, p = np.random.default_rng(seed), cell["columns"]
        self.cell, self.columns, self.groups = cell, rng.random((rows, p)), rng.integers(0, 3, rows)
        self.index = (2 * self.columns - 1) @ np.linspace(1, 0.2, p) * 1.7 / np.sqrt(p) + 0.4 * (
            self.groups - 1
        )
        odds = expit(logit(float(cell["share"])) + (0 if cell["trial"] else cell["steep"]) * self.index)
        chance = rng.random(rows)
        self.arms = (chance < odds).astype(int)
        if cell["question"] in ("arms", "doses"):
            self.arms += chance < 0.4 * odds
        varies = 1 + cell["varies"] * (self.groups + 2 * self.columns[:, 0] - 2)
        self.by_arm = [self._outcomes([*seed, 1], cell["effect"] * arm * varies) for arm in range(3)]
        self.times = [self._times([*seed, 2], arm) for arm in range(3)]
        self.rng = rng
        self.lost = np.random.default_rng([*seed, 3]).uniform(0, cell["followed"], rows)
        if cell["whole"]:
            self.lost = np.ceil(12 * self.lost) / 12

    def _outcomes(self, seed: Any, effect: Any) -> Any:
        return SHAPES[self.cell["shape"]].outcomes(np.random.default_rng(seed), self.index, effect)

    def _times(self, seed: Any, arm: int) -> Any:
        hazard = self.cell["rate"] * np.exp(-0.5 * self.cell["effect"] * arm)
        times = (np.random.default_rng(seed).exponential(size=len(self.index)) / hazard) ** (
            1 / self.cell["weibull"]
        )
        return np.ceil(12 * times) / 12 if self.cell["whole"] else times

    @property
    def data(self) -> dict[str, Any]:
        event = np.choose(self.arms, self.times)
        return {
            "t": self.arms, "y": np.choose(self.arms, self.by_arm), "g": self.groups,
            "time": np.minimum(event, self.lost), "event": (event <= self.lost).astype(int),
        } | {f"x{j}": column for j, column in enumerate(self.columns.T)}  # fmt: skip

    def study(self, **more: Any) -> cv.Study:
        covariates = {f"x{j}": cv.Range(0, 1) for j in range(self.cell["columns"])}
        declared: Cell = {"randomised": True} if self.cell["trial"] else {}
        declared |= (
            {"arms": (0, 1, 2), "reference": 0}
            if self.cell["question"] in ("arms", "doses")
            else {"control": 0}
        )
        known = {"outcome": "y", "outcome_range": self.bounds} | more
        return study_of("t", covariates=covariates | {"g": cv.Categories([0, 1, 2])}, **known, **declared)

    @property
    def bounds(self) -> tuple[float, float]:
        shape, times = SHAPES[self.cell["shape"]], self.cell["outcome_range"]
        middle, half = (shape.low + shape.high) / 2, times * (shape.high - shape.low) / 2
        return middle - half, middle + half

    @property
    def effects(self) -> Any:
        return self.by_arm[1] - self.by_arm[0]


def groups(people: People, asked: Cell) -> Ends:
    found = cv.groups(people.data, people.study(), by="g", **asked)
    return {one["group"]: (one["conf_low"], one["conf_high"]) for one in found.tidy()}


def of_groups(people: People) -> dict[str, float]:
    return {f"g={k}": float(people.effects[people.groups == k].mean()) for k in range(3)}


def arms(people: People, asked: Cell) -> Ends:
    rows = cv.arms(people.data, people.study(), **asked).tidy()
    return {
        f"{one['arm']}": (one["conf_low"], one["conf_high"])
        for one in rows
        if one.get("reference", 0) is not None
    }


def of_arms(people: People) -> dict[str, float]:
    return {f"{arm}": float((people.by_arm[arm] - people.by_arm[0]).mean()) for arm in (1, 2)}


def policy(people: People, asked: Cell) -> Ends:
    found = cv.policy_value(people.data, people.study(), policy=cv.Policy.where(x0=QUERY), **asked)
    return {"over none": found.over_none.interval(), "over all": found.over_all.interval()}


def of_policy(people: People) -> dict[str, float]:
    chosen = float((people.effects * (people.columns[:, 0] >= QUERY[0])).mean())
    return {"over none": chosen, "over all": chosen - float(people.effects.mean())}


def moments(people: People, asked: Cell) -> Ends:
    found = cv.moments(people.data, people.study(), **asked).regress("y ~ t + x0 + C(g)")
    return {one.name: one.interval() for one in found.coefficients if one.name in ("t", "x0")}


def of_moments(people: People) -> dict[str, float]:
    table = [
        np.ones(len(people.arms)),
        people.arms,
        people.columns[:, 0],
        people.groups == 1,
        people.groups == 2,
    ]
    found = np.linalg.lstsq(np.column_stack(table), people.data["y"], rcond=None)[0]
    return {"t": float(found[1]), "x0": float(found[2])}


def quantiles(people: People, asked: Cell) -> Ends:
    grid = "found" if people.cell["question"] == FOUND else "even"
    found = cv.quantiles(people.data, people.study(), grid=grid, **asked)
    ends = {f"difference {q}": found.quantile_difference(q).interval() for q in SHARES}
    return ends | {
        f"{arm} {q}": found.quantile(arm, q).interval() for arm in ("treated", "control") for q in SHARES
    }


def of_quantiles(people: People) -> dict[str, float]:
    one, other = (np.quantile(people.by_arm[arm], SHARES, method="inverted_cdf") for arm in (1, 0))
    found = {f"difference {q}": float(one[k] - other[k]) for k, q in enumerate(SHARES)}
    by_arm = {"treated": one, "control": other}
    return found | {f"{arm} {q}": float(by_arm[arm][k]) for arm in by_arm for k, q in enumerate(SHARES)}


def survival(people: People, asked: Cell) -> Ends:
    study = people.study(outcome="time", outcome_range=None, event="event", horizon=HORIZON)
    found = cv.survival(people.data, study, **asked)
    ends = {
        "restricted mean": found.restricted_mean_difference.interval(),
        "survival": found.difference(HORIZON).interval(),
    }
    if not people.cell["whole"]:
        ends["hazard ratio"] = found.hazard_ratio().interval()
    return ends | {f"median {arm}": found.quantile(arm).interval() for arm in ("treated", "control")}


def of_survival(people: People) -> dict[str, float]:
    one, other = people.times[1], people.times[0]
    found = {"survival": float((one > HORIZON).mean() - (other > HORIZON).mean())}
    found["restricted mean"] = float(np.minimum(one, HORIZON).mean() - np.minimum(other, HORIZON).mean())
    found["hazard ratio"] = float(np.exp(-0.5 * people.cell["effect"]))
    for arm, times in (("treated", one), ("control", other)):
        median = float(np.median(times))
        found[f"median {arm}"] = median if median <= HORIZON else np.inf
    return found


def outcomes(people: People, asked: Cell) -> Ends:
    later = {"z": (np.choose(people.arms, people.times) > HORIZON).astype(float)}
    study = people.study(outcome=None, outcome_range=None, outcomes={"y": people.bounds, "z": (0, 1)})
    rows = cv.outcomes(people.data | later, study, **asked).tidy()
    return {one["outcome"]: (one["conf_low"], one["conf_high"]) for one in rows}


def of_outcomes(people: People) -> dict[str, float]:
    one, other = ((people.times[arm] > HORIZON).mean() for arm in (1, 0))
    return {"y": float(people.effects.mean()), "z": float(one - other)}


def changes(people: People, asked: Cell) -> Ends:
    before = {"b": np.clip(people.rng.permutation(people.by_arm[0]), *people.bounds)}
    found = cv.ate(people.data | before, people.study(before="b"), estimand="ATE", **asked)
    return {"effect": found.interval()}


def clusters(people: People, asked: Cell) -> Ends:
    number = max(20, len(people.arms) // 25)
    where, whole = people.rng.integers(0, number, len(people.arms)), people.cell["whole"]
    arms = (people.rng.permutation(number) % 2)[where] if whole else people.arms
    rows = people.data | {"t": arms, "y": np.choose(arms, people.by_arm), "c": where}
    found = cv.ate(rows, people.study(cluster="c", assigned_by_cluster=whole), **asked)
    return {"effect": found.interval()}


def visits(people: People, asked: Cell) -> Ends:
    who = np.repeat(np.arange(len(people.arms)), people.rng.integers(1, 4, len(people.arms)))
    rows = {name: np.asarray(column)[who] for name, column in people.data.items()} | {"id": who}
    return {"effect": cv.ate(rows, people.study(person="id"), **asked).interval()}


def of_everyone(people: People) -> dict[str, float]:
    one, other = (np.clip(people.by_arm[arm], *people.bounds).mean() for arm in (1, 0))
    return {"effect": float(one - other)}


def competing(people: People, asked: Cell) -> Ends:
    rows = people.data
    rows["event"] = rows["event"] * (1 + (people.rng.random(len(people.arms)) < 1 - CAUSE))
    declared = {"outcome": "time", "outcome_range": None, "event": "event", "causes": ["one", "two"]}
    found = cv.survival(rows, people.study(horizon=HORIZON, **declared), **asked)
    ends = {arm: found.incidence("one", arm, HORIZON / 2).interval() for arm in ("treated", "control")}
    return ends | {"difference": found.incidence_difference("one").interval()}


def of_competing(people: People) -> dict[str, float]:
    one, other = people.times[1], people.times[0]
    found = {"treated": one <= HORIZON / 2, "control": other <= HORIZON / 2}
    ends = {arm: CAUSE * float(early.mean()) for arm, early in found.items()}
    return ends | {"difference": CAUSE * float((one <= HORIZON).mean() - (other <= HORIZON).mean())}


def doses(people: People, asked: Cell) -> Ends:
    found = cv.arms(people.data, people.study(), **asked)
    return {"slope": found.slope({0: 0, 1: 1, 2: 2}).interval()}


def of_doses(people: People) -> dict[str, float]:
    return {"slope": float(people.by_arm[2].mean() - people.by_arm[0].mean()) / 2}


Question = tuple[Callable[[People, Cell], Ends], Callable[[People], dict[str, float]]]
QUESTIONS: dict[str, Question] = {
    "groups": (groups, of_groups), "arms": (arms, of_arms), "policy": (policy, of_policy),
    "moments": (moments, of_moments), "quantiles": (quantiles, of_quantiles), FOUND: (quantiles, of_quantiles),
    "survival": (survival, of_survival), "outcomes": (outcomes, of_outcomes), "changes": (changes, of_everyone),
    "clusters": (clusters, of_everyone), "visits": (visits, of_everyone), "competing": (competing, of_competing),
    "doses": (doses, of_doses),
}  # fmt: skip


def drawn(seed: int, number: int, names: tuple[str, ...]) -> Cell:
    """Return the settings of a cell."""
    rng = np.random.default_rng([seed, number])
    cell = {name: values[rng.integers(len(values))] for name, values in CHOICES.items()}
    cell["question"] = names[rng.integers(len(names))]
    if SHAPES[cell["shape"]].binary:
        cell["outcome_range"] = 1
    if cell["question"] == "moments":
        cell["level"] = "record"
    if cell["question"] in ("quantiles", FOUND, "survival") and cell["level"] == "record":
        cell["trial"] = True
    if cell["question"] in ("clusters", "competing"):
        cell["trial"] = True
    return cell


def missed(
    cell: Cell, seed: list[int], draws: range, truths: dict[str, float]
) -> tuple[Counter[str], int, Counter[str]]:
    """Return how often each number was missed, in how many answers, and the codes of refusals."""
    misses, answered, codes = Counter[str](), 0, Counter[str]()
    for draw in draws:
        people = People(cell, [*seed, draw], cell["rows"])
        asked = {"protects": cell["level"], "epsilon": cell["epsilon"], "delta": cell["delta"]}
        try:
            ends = QUESTIONS[cell["question"]][0](
                people, asked | {"noise": cv.SeededNoise(1_000 * seed[-1] + draw)}
            )
        except CounterveilError as refusal:
            codes[refusal.code] += 1
            if draw - draws.start + 1 == REFUSED and not answered:
                break
            continue
        answered += 1
        slack = {name: ROUNDING * (1 + abs(truths[name])) for name in ends if np.isfinite(truths[name])}
        misses.update(
            name for name, (low, high) in ends.items()
            if not low - slack.get(name, 0) <= truths[name] <= high + slack.get(name, 0)
        )  # fmt: skip
    return misses, answered, codes


def beyond(misses: Counter[str], answered: int, chance: float) -> bool:
    """Whether the worst number has more misses than intervals of 95% have with this chance, over all numbers."""
    worst = max(misses.values(), default=0)
    return worst > 0 and bool(len(misses) * binom.sf(worst - 1, answered, 0.05) < chance)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cells", type=int, default=100)
    parser.add_argument("--from", type=int, default=0, dest="start", help="number of the first cell")
    parser.add_argument("--only", choices=QUESTIONS, help="one question")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    judged: Counter[str] = Counter()
    for number in range(given.start, given.start + given.cells):
        cell = drawn(given.seed, number, (given.only,) if given.only else tuple(QUESTIONS))
        seed = [given.seed, number]
        truths = QUESTIONS[cell["question"]][1](People(cell, [*seed, 1 << 20], MANY))
        misses, answered, codes = missed(cell, seed, range(FIRST), truths)
        kind = "answered" if answered else "refused"
        if beyond(misses, answered, SEEMS):
            misses, answered, codes = missed(cell, seed, range(FIRST, FIRST + AGAIN), truths)
            kind = "beyond" if beyond(misses, answered, SURE) else kind
        judged[f"{cell['question']} {kind}"] += 1
        if kind == "beyond":
            told = cell | {"shape": SHAPES[cell["shape"]].name}
            print(number, ", ".join(f"{name} {value}" for name, value in told.items()), flush=True)
            print(f"   of {answered}: {dict(misses)} {dict(codes)}", flush=True)
    print(dict(sorted(judged.items())), flush=True)


if __name__ == "__main__":
    main()
