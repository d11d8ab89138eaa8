"""Every way to ask, through the library's front door, and what is true where it asks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import counterveil as cv
from counterveil.errors import CounterveilError
from experiments.shapes import plain
from experiments.shapes.designs import DESIGNS, LABELS, SHAPES, TIMES, Sample

ROWS = (500, 5_000, 50_000)
# Of questions whose answers take long, where covariates are public.
FEW_ROWS = (500, 2_000)
POINTS = {
    "a": np.array([0.1, 0.4, 0.6, 0.9]),
    "b": np.array([0, 1, 0, 1]),
    "c": np.array(["p", "q", "r", "q"]),
}


@dataclass(frozen=True)
class Found:
    """Effects of one answer beside what is true: estimates less the truth, and the ends of intervals less the truth."""

    errors: list[float]
    ends: list[tuple[float, float]]
    valid: bool = True  # False where the answer says first that it has no valid interval

    @classmethod
    def of(cls, table: Any, truths: list[float], valid: bool = True) -> Found:
        """Return what a table of effects says of as many truths."""
        assert len(table) == len(truths)
        ends = [effect.interval() for effect in table]
        return cls.answers(
            [(effect.estimate, *both) for effect, both in zip(table, ends, strict=True)], truths, valid
        )

    @classmethod
    def answers(cls, answers: list[Any], truths: list[float], valid: bool = True) -> Found:
        pairs = list(zip(answers, truths, strict=True))
        return cls(
            [one[0] - truth for one, truth in pairs],
            [(one[1] - truth, one[2] - truth) for one, truth in pairs],
            valid,
        )


Ask = Callable[[Sample, dict[str, Any]], Found]
Against = Callable[[Sample, str, float, float, int], Found]


@dataclass(frozen=True)
class Way:
    """One way to ask: its question and level, on which designs and shapes, and what it is held against."""

    level: str
    ask: Ask
    designs: tuple[int, ...] = (0, 1, 2, 3)
    shapes: tuple[Any, ...] = SHAPES
    free: Callable[[Sample], Found] | None = None
    plain: Against | None = None
    rows: tuple[int, ...] = ROWS


def _free(sample: Sample) -> Found:
    return Found.answers([plain.without_privacy(sample)], [sample.average()])


def _plain(sample: Sample, level: str, epsilon: float, delta: float, seed: int) -> Found:
    return Found.answers([plain.plainest(sample, level, epsilon, delta, seed)], [sample.average()])


TRIAL, OBSERVATIONAL = (0, 1), (2, 3)
QUARTILES = (0.25, 0.5, 0.75)
POSITIVE = tuple(shape for shape in SHAPES if shape.low >= 0)
BINARY = tuple(shape for shape in SHAPES if shape.binary)


def _ate(level: str, designs: tuple[int, ...] = (0, 1, 2, 3), estimand: str = "ATE", **given: Any) -> Way:
    def ask(sample: Sample, budget: dict[str, Any]) -> Found:
        result = cv.ate(sample.data, sample.study(), protects=level, estimand=estimand, **(given | budget))
        return Found.of(result.table, [sample.average(estimand)], result.interval_target is None)

    same = estimand == "ATE"
    return Way(level, ask, designs, SHAPES, _free if same else None, _plain if same else None)


def _measure(level: str, measure: str, designs: tuple[int, ...] = TRIAL, **given: Any) -> Way:
    def ask(sample: Sample, budget: dict[str, Any]) -> Found:
        words = {"protects": level, "measure": measure} | given | budget
        result = cv.ate(sample.data, sample.study(), **words)
        m1, m0 = (float(mean.mean()) for mean in sample.means)
        truth = m1 / m0 if measure == "ratio" else m1 / (1 - m1) / (m0 / (1 - m0))
        (effect,) = result.table
        low, high = effect.interval()
        return Found.answers([(effect.estimate, low, high)], [truth])

    return Way(level, ask, designs, POSITIVE if measure == "ratio" else BINARY)


def _several(level: str) -> Way:
    def ask(sample: Sample, budget: dict[str, Any]) -> Found:
        shape = sample.shape
        other = shape.outcomes(sample.rng, sample.index, np.zeros(sample.rows))
        declared = {"outcomes": {"y": (shape.low, shape.high), "z": (shape.low, shape.high)}}
        data = sample.data | {"z": other}
        result = cv.outcomes(data, sample.study(**declared), protects=level, **budget)
        return Found.of(result.table, [sample.average(), 0.0])

    return Way(level, ask, (0, 1, 2, 3) if level == "outcome" else TRIAL)


def _arms(level: str = "outcome", designs: tuple[int, ...] | None = None, **given: Any) -> Way:
    def ask(sample: Sample, budget: dict[str, Any]) -> Found:
        arm = np.where((sample.treated == 0) & (sample.rng.random(sample.rows) < 0.5), 2, sample.treated)
        study = sample.study(arms=(0, 1, 2), reference=0)
        result = cv.arms(sample.data | {"t": arm}, study, protects=level, **(given | budget))
        return Found.of(result.table, [sample.average(), 0.0])

    return Way(level, ask, designs or ((0, 2, 3) if level == "outcome" else TRIAL))


def _groups(level: str, designs: tuple[int, ...] = (0, 1, 2, 3), **given: Any) -> Way:
    def group(sample: Sample) -> np.ndarray:
        return sample.covariates["b"]

    def truths(sample: Sample) -> list[float]:
        return [float(sample.effects[group(sample) == value].mean()) for value in (0, 1)]

    def ask(sample: Sample, budget: dict[str, Any]) -> Found:
        result = cv.groups(sample.data, sample.study(), by="b", protects=level, **(given | budget))
        return Found.of(result.table, truths(sample))

    def free(sample: Sample) -> Found:
        both = [plain.without_privacy(sample, group(sample) == value) for value in (0, 1)]
        return Found.answers(both, truths(sample))

    def against(sample: Sample, level: str, epsilon: float, delta: float, seed: int) -> Found:
        return Found.answers(
            plain.by_group(sample, level, epsilon, delta, seed, group(sample)), truths(sample)
        )

    return Way(level, ask, designs, SHAPES, free, against)


def _at_points(sample: Sample) -> np.ndarray:
    s = 0.5 * (2 * POINTS["a"] - 1) + 0.3 * (2 * POINTS["b"] - 1)
    s = s + 0.2 * (np.array([LABELS.index(label) for label in POINTS["c"]]) - 1.0)
    return sample.shape.mean(s, np.ones(4)) - sample.shape.mean(s, np.zeros(4))


def _cate(level: str, **given: Any) -> Way:
    """Return effects at four points, and where one number is answered that number beside the average effect."""

    def ask(sample: Sample, budget: dict[str, Any]) -> Found:
        model = cv.cate(sample.data, sample.study(), protects=level, **(given | budget))
        truths = _at_points(sample)
        if len(model.table) == 1:
            one = Found.of(model.table, [sample.average()], model.interval_target is None)
            errors = [model.table[0].estimate - float(truth) for truth in truths]
            return Found(errors, one.ends, one.valid)
        if "queries" in given:
            return Found.of(model.table, list(truths), model.interval_target is None)
        errors = [float(error) for error in model.effect(POINTS) - truths]
        low, high = model.interval(POINTS)
        ends = [(float(a), float(b)) for a, b in zip(low - truths, high - truths, strict=True)]
        return Found(errors, ends, model.interval_target is None)

    def constant(sample: Sample, level: str, epsilon: float, delta: float, seed: int) -> Found:
        one, low, high = plain.plainest(sample, level, epsilon, delta, seed)
        average = sample.average()
        return Found([float(one - truth) for truth in _at_points(sample)], [(low - average, high - average)])

    return Way(level, ask, plain=constant)


def _moments(level: str) -> Way:
    def ask(sample: Sample, budget: dict[str, Any]) -> Found:
        moments = cv.moments(sample.data, sample.study(), protects=level, **budget)
        effect = moments.regress("y ~ t + a + b + c").coefficient("t")
        low, high = effect.interval()
        return Found.answers([(effect.estimate, low, high)], [plain.projected(sample)])

    def free(sample: Sample) -> Found:
        return Found.answers([plain.least_squares(sample)], [plain.projected(sample)])

    return Way(level, ask, free=free)


def _periods(level: str, **given: Any) -> Way:
    def ask(sample: Sample, budget: dict[str, Any]) -> Found:
        shape, nobody = sample.shape, np.zeros(sample.rows)
        earlier = {name: shape.outcomes(sample.rng, sample.index, nobody) for name in ("y1", "y2")}
        study = sample.study(before=("y1", "y2"), before_range=(shape.low, shape.high))
        result = cv.event_study(sample.data | earlier, study, protects=level, **(given | budget))
        estimand = "ATE" if sample.design.trial else "ATT"
        return Found.of(result.table, [0.0, sample.average(estimand)])

    return Way(level, ask)


def _change(level: str) -> Way:
    def ask(sample: Sample, budget: dict[str, Any]) -> Found:
        shape = sample.shape
        earlier = shape.outcomes(sample.rng, sample.index, np.zeros(sample.rows))
        study = sample.study(before="y1", before_range=(shape.low, shape.high))
        result = cv.ate(sample.data | {"y1": earlier}, study, protects=level, **budget)
        estimand = "ATE" if sample.design.trial else "ATT"
        return Found.of(result.table, [sample.average(estimand)], result.interval_target is None)

    return Way(level, ask)


def _per(level: str) -> Way:
    """Return a difference of ratios; denominators from 1 to 5 have nothing to do with outcomes."""

    def ask(sample: Sample, budget: dict[str, Any]) -> Found:
        below = sample.rng.integers(1, 6, sample.rows)
        study = sample.study(denominator="d", denominator_range=(0, 5), covariates={})
        result = cv.ate(sample.data | {"d": below}, study, protects=level, **budget)
        return Found.of(result.table, [sample.average() / 3])

    return Way(level, ask, TRIAL, POSITIVE)


def _policy(level: str = "record", rows: tuple[int, ...] = ROWS, **given: Any) -> Way:
    def ask(sample: Sample, budget: dict[str, Any]) -> Found:
        rule = cv.Policy.where(b=[1])
        result = cv.policy_value(sample.data, sample.study(), policy=rule, protects=level, **(given | budget))
        truth = float((sample.effects * sample.covariates["b"]).mean())
        return Found.of([result.over_none], [truth])

    return Way(level, ask, rows=rows)


class Slope:
    """A public score: the number among the covariates."""

    def effect(self, X: Any) -> np.ndarray:
        return np.asarray(X["a"], dtype=float)


def _curve(level: str = "record", rows: tuple[int, ...] = ROWS) -> Way:
    def ask(sample: Sample, budget: dict[str, Any]) -> Found:
        asked = {"model": Slope(), "bins": 4, "protects": level} | budget
        result = cv.targeting_curve(sample.data, sample.study(), **asked)
        a = sample.covariates["a"]
        above = [np.ones(sample.rows) if end is None else a >= end for end in result.thresholds]
        return Found.of(result.gains, [float((sample.effects * who).mean()) for who in above])

    return Way(level, ask, rows=rows)


@cache
def _quantiles_of(shape: Any) -> list[float]:
    """Return the differences of quartiles that treatment of everybody makes, from many people."""
    many = Sample(shape, DESIGNS[0], 1, 400_000)
    arms = (shape.outcomes(many.rng, many.index, np.full(many.rows, t)) for t in (1, 0))
    treated, control = (np.quantile(y, QUARTILES, method="inverted_cdf") for y in arms)
    return [float(gap) for gap in treated - control]


def _quantiles(level: str) -> Way:
    def ask(sample: Sample, budget: dict[str, Any]) -> Found:
        study = sample.study(covariates={})
        result = cv.quantiles(sample.data, study, probs=QUARTILES, protects=level, **budget)
        return Found.of(result.table, _quantiles_of(sample.shape))

    return Way(level, ask, TRIAL, rows=FEW_ROWS)


def _survival(level: str, designs: tuple[int, ...], **given: Any) -> Way:
    def people(sample: Sample) -> dict[str, Any]:
        times, events = sample.shape.draw(sample.rng, sample.index, sample.treated)
        x = sample.covariates
        return {
            "a": x["a"],
            "b": x["b"],
            "c": np.array(LABELS)[x["c"]],
            "t": sample.treated,
            "y": times,
            "event": events,
        }

    def ask(sample: Sample, budget: dict[str, Any]) -> Found:
        study = sample.study(event="event", horizon=1, grid=sample.shape.grid)
        data = people(sample)
        sample.__dict__["times"] = data["y"], data["event"]
        result = cv.survival(data, study, protects=level, **(given | budget))
        return Found.of([result.difference(1)], [sample.average()])

    def free(sample: Sample) -> Found:
        return Found.answers([plain.kaplan_meier(sample, *sample.__dict__["times"])], [sample.average()])

    return Way(level, ask, designs, TIMES, free if designs == TRIAL else None)


def _pooled(level: str) -> Way:
    """Return the average of three sites of equal size."""

    def ask(sample: Sample, budget: dict[str, Any]) -> Found:
        sites = []
        for site in range(3):
            part = {name: values[site::3] for name, values in sample.data.items()}
            noise = cv.SeededNoise(3 * budget["noise"].seed + site)
            sites.append(cv.ate(part, sample.study(), protects=level, **(budget | {"noise": noise})))
        result = cv.pool(sites)
        return Found.answers([(result.estimate, *result.interval())], [sample.average()])

    return Way(level, ask, TRIAL)


def _clusters(level: str) -> Way:
    def ask(sample: Sample, budget: dict[str, Any]) -> Found:
        study = sample.study(cluster="g", covariates={})
        data = sample.data | {"g": np.arange(sample.rows) // 10}
        result = cv.ate(data, study, protects=level, **budget)
        return Found.of(result.table, [sample.average()], result.interval_target is None)

    return Way(level, ask, TRIAL, free=_free)


def _interim(level: str) -> Way:
    """Return the second of two looks."""

    def ask(sample: Sample, budget: dict[str, Any]) -> Found:
        rows = [sample.rows // 2, sample.rows]
        names = [name for name in sample.data if name != "y"]
        spend = {key: budget[key] for key in ("epsilon", "delta")}
        access_policy = cv.drafting.AccessPolicy(public=names, looks=cv.interim.planned("y", rows, **spend))
        with cv.open_ledger(":memory:", create=True) as book:
            book.register("trial", cv.Budget(**spend), access_policy=access_policy)
            for number, several in enumerate(rows, 1):
                part = {name: values[:several] for name, values in sample.data.items()}
                result = cv.interim.look(
                    part,
                    sample.study(),
                    number=number,
                    protects=level,
                    ledger=book,
                    noise=cv.SeededNoise(2 * budget["noise"].seed + number),
                )
        return Found.of(result.table, [sample.average()])

    return Way(level, ask, TRIAL)


def ways() -> dict[str, Way]:
    """Return every way to ask by its name: question, method, level."""
    found: dict[str, Way] = {}
    for level in ("outcome", "record"):
        found[f"ate auto, {level}"] = _ate(level)
        found[f"ate auto ATT, {level}"] = _ate(level, estimand="ATT")
        found[f"ate stratified, {level}"] = _ate(level, method="stratified")
        found[f"ate matching, {level}"] = _ate(level, OBSERVATIONAL, method="matching")
        found[f"ate before=, {level}"] = _change(level)
        found[f"ate per=, {level}"] = _per(level)
        found[f"ate cluster=, {level}"] = _clusters(level)
        found[f"ratio auto, {level}"] = _measure(level, "ratio")
        found[f"odds ratio auto, {level}"] = _measure(level, "odds_ratio")
        found[f"outcomes auto, {level}"] = _several(level)
        found[f"groups auto, {level}"] = _groups(level)
        found[f"cate auto, {level}"] = _cate(level)
        found[f"moments, {level}"] = _moments(level)
        found[f"event study auto, {level}"] = _periods(level)
        found[f"survival kaplan-meier, {level}"] = _survival(level, TRIAL, method="kaplan_meier")
        found[f"survival stratified, {level}"] = _survival(level, (0, 1, 2, 3), method="stratified")
        found[f"pool, {level}"] = _pooled(level)
        found[f"interim, {level}"] = _interim(level)
    found["ate difference in means, outcome"] = _ate("outcome", TRIAL, method="difference_in_means")
    found["ate weighting, outcome"] = _ate("outcome", method="weighting")
    found["groups weighting, outcome"] = _groups("outcome", method="weighting")
    found["arms auto, outcome"] = _arms()
    found["survival weighting, outcome"] = _survival("outcome", (0, 1, 2, 3), method="weighting")
    found["ate trial, record"] = _ate("record", TRIAL, method="trial")
    found["ate trial adjusted, record"] = _ate(
        "record", TRIAL, method="trial", settings=cv.settings.Trial("covariates")
    )
    found["ate auto ATO, record"] = _ate("record", OBSERVATIONAL, estimand="ATO")
    # The names choose the cells of the covering design.
    for name, method in (("doubly robust", "doubly_robust"), ("fold aggregation", "sample_and_aggregate")):
        found[f"ate {name}, record"] = _ate("record", OBSERVATIONAL, method=method)
    found["groups adjusted, record"] = _groups("record", OBSERVATIONAL, method="adjusted")
    found["cate at points, record"] = _cate("record", queries=POINTS)
    found["policy value auto, record"] = _policy()
    found["targeting curve auto, record"] = _curve()
    both = "treatment and outcome"
    found[f"ate auto, {both}"] = _ate(both)
    for estimand in ("ATT", "ATO"):
        found[f"ate auto {estimand}, {both}"] = _ate(both, OBSERVATIONAL, estimand=estimand)
    found["arms auto, record"] = _arms("record")
    found["ratio doubly robust, record"] = _measure("record", "ratio", (0, 1, 2, 3), method="doubly_robust")
    # Those that come last have cells of their own, and leave the others' as they are.
    found["arms doubly robust, record"] = _arms("record", OBSERVATIONAL, method="doubly_robust")
    found[f"outcomes auto, {both}"] = _several(both)
    for level in ("outcome", both):
        found[f"policy value auto, {level}"] = _policy(level, FEW_ROWS)
    found[f"targeting curve auto, {both}"] = _curve(both, FEW_ROWS)
    for level in ("outcome", both, "record"):
        found[f"quantiles trial, {level}"] = _quantiles(level)
    return found


def answer(way: Way, sample: Sample, epsilon: str, delta: str, seed: int) -> Found | str:
    """Return the answer, or the code of the refusal."""
    budget = {"epsilon": epsilon, "delta": delta, "noise": cv.SeededNoise(seed)}
    try:
        return way.ask(sample, budget)
    except CounterveilError as refusal:
        return refusal.code
