"""Answers of several effects, pooled row by row; second moments, added up.

A pooled answer has the table of effects that the answer of every site has. Effects of one site share people, so that
intervals for all rows are Bonferroni's. Proof: inference/pooling.proof.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp, hypot, inf, isfinite, log, sqrt
from typing import Any, ClassVar, Self, cast

import numpy as np
from scipy.special import ndtri

from counterveil.errors import refusal
from counterveil.inference import ErrorBetweenSites, Heterogeneity, heterogeneity
from counterveil.inference.measures import ApartMeans, JointMeans, NoisyRatio, RatioDifference, p_value
from counterveil.inference.moments import LinearFit, NoisyMoments, SummedMoments
from counterveil.inference.pooling import PooledMeans
from counterveil.inference.survival import Area, Gap
from counterveil.numerics.arrays import Ends, Floats
from counterveil.privacy import Estimand
from counterveil.questions.pooled.pool import (
    METHOD_TEXTS,
    METHODS,
    Answers,
    PooledResult,
    Sources,
    averaged,
    check_agreement,
    check_document,
    check_method,
    check_sound,
    facts_of,
    held,
    named,
    no_result,
    pool_one,
    pooled_caveats,
    pooled_guarantee,
    pooled_opening,
    pooled_spending,
    public_variances,
    refusing_others,
    sizes_of,
)
from counterveil.report.numbers import probability
from counterveil.results.arms import ArmsResult
from counterveil.results.codec import kind_of, read, refusing
from counterveil.results.effect import Effect, Known, Linear, OwnScale, check_level, within
from counterveil.results.groups import GroupsResult
from counterveil.results.measure_words import DIFFERENCE, NAMES
from counterveil.results.measures import known_as
from counterveil.results.outcomes import OutcomesResult
from counterveil.results.regression import Formula, Matrix, Moments
from counterveil.results.result import Comparison, MeasureResult
from counterveil.results.survival import SurvivalResult, said
from counterveil.settings import WeightLimits

Answer = ArmsResult | GroupsResult | OutcomesResult | SurvivalResult
_TABLES = (ArmsResult, GroupsResult, OutcomesResult, SurvivalResult)
KINDS: dict[str, Any] = {kind.__name__: kind for kind in (*_TABLES, Moments)}
# Columns of moments that say which site a row is of.
_SITE = "site"


def kind_of_all(sources: Any) -> type | None:
    """Return the kind of several answers, None where they are of one effect each, or of nothing that is known."""
    first = (
        next(iter(sources.values() if isinstance(sources, Mapping) else sources), None) if sources else None
    )
    if isinstance(first, tuple(KINDS.values())):
        return type(first)
    if not isinstance(first, Mapping | str) and not hasattr(first, "__fspath__"):
        return None
    kind = facts_of(first, "a site").get("kind")
    return KINDS.get(kind) if isinstance(kind, str) else None


def read_answer(source: Any, name: str) -> Any:
    """Return an answer of several effects, or moments, in an object, its facts or a file of them, or raise CV-P502."""
    if isinstance(source, tuple(KINDS.values())) and not isinstance(source, PooledMoments):
        found = source
    else:
        facts = facts_of(source, name)
        with refusing_others(name):
            check_document(facts)
            found = kind_of(facts, KINDS).from_dict(dict(facts))
    for one in numbers_of(found).values() if not isinstance(found, Moments) else ():
        if isinstance(one, Linear):
            check_sound(one, name)
    return found


def numbers_of(answer: Any) -> dict[str, Any]:
    """Return what was released for every row of an answer, by the row's name: what rows are pooled from."""
    if isinstance(answer, OutcomesResult):
        return {one.name: one.numbers for one in answer.released}
    return {str(one.name): one.known for one in answer.table}


# A row: the average of one number over sites.


@dataclass(frozen=True, slots=True)
class PooledKnown:
    """An average of numbers that have intervals of their own, such as differences of survival.

    Its interval is normal, and what the intervals of sites reach beyond their normal ones is averaged and added: bias
    that no averaging removes, heavy tails and skewness are not taken for less than they are at the sites.
    """

    sites: tuple[Known, ...]
    weights: tuple[float, ...]
    limits: Ends | None = None
    between: float = 0.0
    between_sites: ErrorBetweenSites | None = None

    def _weighed(self) -> list[tuple[float, Known]]:
        return [(weight, one) for weight, one in zip(self.weights, self.sites, strict=True) if weight > 0]

    @property
    def estimate(self) -> float:
        """The average, cut to what it can be."""
        found = sum(weight * one.estimate for weight, one in self._weighed())
        return within((found, found), self.limits)[0]

    @property
    def sampling_sd(self) -> float:
        """Standard deviation of the sampling error."""
        return hypot(*(weight * one.sampling_sd for weight, one in self._weighed()))

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise."""
        return hypot(*(weight * one.noise_sd for weight, one in self._weighed()))

    def interval(self, level: float) -> Ends:
        """Return the two ends of an interval of this level; nothing is known where a site's number is infinite."""
        if not isfinite(self.estimate):
            return within((-inf, inf), self.limits)
        normal, down, up = -float(ndtri((1 - level) / 2)), 0.0, 0.0
        for weight, one in self._weighed():
            (low, high), own = one.interval(level), normal * hypot(one.sampling_sd, one.noise_sd)
            down += weight * max(one.estimate - low - own, 0.0)
            up += weight * max(high - one.estimate - own, 0.0)
        spread = self.between * float(np.square(self.weights).sum())
        half = normal * sqrt(self.sampling_sd**2 + self.noise_sd**2 + spread)
        half = half if self.between_sites is None else max(half, self.between_sites.half_width(level))
        return within((self.estimate - half - down, self.estimate + half + up), self.limits)


@dataclass(frozen=True, slots=True)
class _Logarithm:
    """The logarithm of a ratio that is known on its own scale; a ratio that is lost in noise says nothing."""

    known: Known

    @property
    def _sound(self) -> bool:
        return 0 < self.known.estimate < inf

    @property
    def estimate(self) -> float:
        """The logarithm, 0 where there is none."""
        return log(self.known.estimate) if self._sound else 0.0

    @property
    def sampling_sd(self) -> float:
        """Standard deviation of the sampling error."""
        return self.known.sampling_sd / self.known.estimate if self._sound else inf

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise."""
        return self.known.noise_sd / self.known.estimate if self._sound else inf

    def interval(self, level: float) -> Ends:
        """Return the two ends, which may be infinite."""
        low, high = self.known.interval(level)
        return (log(low) if low > 0 else -inf), (log(high) if high < inf else inf)


@dataclass(frozen=True, slots=True)
class PooledRatio(OwnScale):
    """An average of ratios on the scale of logarithms, such as hazard ratios."""

    logarithm: PooledKnown

    @property
    def null(self) -> float:
        """The value of no effect."""
        return 1.0

    @property
    def estimate(self) -> float:
        """The ratio."""
        return exp(self.logarithm.estimate)

    @property
    def sampling_sd(self) -> float:
        """Standard deviation of the sampling error."""
        return self.estimate * self.logarithm.sampling_sd

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise."""
        return self.estimate * self.logarithm.noise_sd

    def interval(self, level: float) -> Ends:
        """Return the two ends, which may be infinite."""
        low, high = self.logarithm.interval(level)
        return exp(low), exp(min(high, 700.0)) if isfinite(high) else inf

    def p_value(self, level: float, value: float | None = None) -> float:  # noqa: ARG002 - of every level the same
        """Return the p-value of a ratio of `value`, one if it is omitted."""
        return p_value(self.logarithm.interval, log(value) if value else 0.0)


class PooledEffect(Effect):
    """One row of a pooled table. Its intervals for all rows are Bonferroni's: they hold however rows depend."""

    __slots__ = ()

    @property
    def adjusted_p_value(self) -> float:
        """The p-value for looking at all rows, at most 1."""
        return min(1.0, self.several * self.careful_p_value)

    def _level(self, level: float | None, simultaneous: bool) -> float:
        chosen = self.level if level is None else check_level(level)
        return 1 - (1 - chosen) / self.several if simultaneous else chosen


@dataclass(frozen=True, slots=True)
class PooledRow:
    """One pooled effect: the weights of the sites that have it, by name, and how far these differ."""

    effect: Effect
    weights: Mapping[str, float]
    heterogeneity: Heterogeneity

    def facts(self) -> dict[str, Any]:
        """Return the row as JSON-ready facts."""
        return self.effect.facts() | {
            "weights": dict(self.weights),
            "heterogeneity": self.heterogeneity.to_dict(),
        }


@dataclass(frozen=True, slots=True)
class _Way:
    """How rows are pooled."""

    method: str
    level: float
    bounds: WeightLimits | None
    several: int = 1
    measure: str = DIFFERENCE

    def row(self, name: str, own: Sequence[tuple[str, Any]], sizes: Floats) -> PooledRow:
        """Return the pooled row of the numbers that sites released for it."""
        values = [numbers for _, numbers in own]
        if all(isinstance(one, Linear) for one in values):
            made = averaged(own, sizes, self.method, self.bounds)
            linear = Linear(made.estimate, made.uncertainty, made.limits)
            return self._made(name, known_as(self.measure, linear), own, made.weights, made.heterogeneity)
        if all(isinstance(one, ApartMeans | JointMeans) for one in values):
            return self._of_means(name, own, sizes)
        if isinstance(values[0], OwnScale) and values[0].null == 1.0:
            logs = [(site, _Logarithm(known)) for site, known in own]
            found, weights, differ = self._by_intervals(logs, sizes)
            return self._made(name, PooledRatio(found), own, weights, differ)
        found, weights, differ = self._by_intervals(own, sizes)
        return self._made(name, found, own, weights, differ)

    def _of_means(self, name: str, own: Sequence[tuple[str, Any]], sizes: Floats) -> PooledRow:
        if self.method not in METHODS:
            raise refusal("CV-P508", methods=" or ".join(map(repr, METHODS)), method=self.method)
        means = [one for _, one in own]
        weights = held(own, public_variances(means, sizes), sizes, self.method, self.bounds)
        pooled = PooledMeans(tuple(means), tuple(map(float, weights)), tuple(site for site, _ in own))
        gaps = np.array([one.values[0] - one.values[1] for one in means])
        errors = np.array([one.error_of_difference.total_sd**2 for one in means])
        return self._made(name, known_as(self.measure, pooled), own, weights, heterogeneity(gaps, errors))

    def _by_intervals(
        self, own: Sequence[tuple[str, Any]], sizes: Floats
    ) -> tuple[PooledKnown, Floats, Heterogeneity]:
        """Return the average of numbers with intervals of their own.

        No weight follows what a site says of its sampling error: all have one sampling variance per person.
        """
        known = [one for _, one in own]
        sampling = np.array([one.sampling_sd**2 for one in known])
        noise = np.array([one.noise_sd**2 for one in known])
        sure = np.isfinite(sampling)
        person = float(np.mean((sampling * sizes)[sure])) if sure.any() else 1.0
        # Not infinite, so that all sites together have a weight.
        variances = np.nan_to_num(np.where(sure, person / sizes, inf) + noise, posinf=1e150)
        estimates = np.nan_to_num([one.estimate for one in known], posinf=0.0, neginf=0.0)
        differ = heterogeneity(estimates, np.nan_to_num(sampling + noise, posinf=1e150) + 1e-300)
        random = self.method == "random_effects"
        tau_squared = differ.tau_squared if random else 0.0
        weights = held(own, variances, sizes, self.method, self.bounds, tau_squared)
        between = ErrorBetweenSites.of(estimates[weights > 0]) if random else None
        limits = _limits_of(known)
        given = tuple(map(float, weights))
        return PooledKnown(tuple(known), given, limits, tau_squared, between), weights, differ

    def _made(
        self, name: str, known: Known, own: Answers, weights: Floats, differ: Heterogeneity
    ) -> PooledRow:
        weighed = {site: float(weight) for (site, _), weight in zip(own, weights, strict=True)}
        return PooledRow(PooledEffect(name, known, self.level, self.several), weighed, differ)


def _limits_of(known: Sequence[Known]) -> Ends | None:
    """Return what an average can be at all, None where a site does not say."""
    found: list[Ends] = []
    for one in known:
        if isinstance(one, NoisyRatio):
            found.append((-one.limit, one.limit))
        elif isinstance(one, RatioDifference):
            found.append((-one.one.limit - one.other.limit, one.one.limit + one.other.limit))
        elif isinstance(one, Gap):
            found.append((-1.0, 1.0))
        elif isinstance(one, Area):
            found.append(one.limits)
        else:
            return None
    return min(low for low, _ in found), max(high for _, high in found)


# A table: all rows, with the answers of the sites that they are made of.


@dataclass(frozen=True, slots=True)
class PooledAnswer:
    """One site's part: its released answer."""

    name: str
    result: Answer


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PooledTable(Comparison):
    """The effects of several sites' answers, averaged row by row; nothing it does spends budget.

    A row is of the sites that have it, two at least; `left_out` names those that only one site has.
    """

    _DERIVED: ClassVar[tuple[str, ...]] = ("rows", "left_out")

    answers: tuple[PooledAnswer, ...]
    rows: tuple[PooledRow, ...]
    estimand: Estimand = Estimand.ATE
    left_out: tuple[str, ...] = ()
    weight_limits: WeightLimits | None = None

    @property
    def table(self) -> tuple[Effect, ...]:
        """The pooled effects, in the order of the first site's answer."""
        return tuple(row.effect for row in self.rows)

    def effect(self, name: str) -> Effect:
        """Return the pooled effect of this name; a KeyError names those there are."""
        for row in self.rows:
            if row.effect.name == name:
                return row.effect
        raise KeyError(f"{name!r}; the effects are {[row.effect.name for row in self.rows]}")

    def average(self, of: Callable[[Any], Effect]) -> Effect:
        """Return the average of any number of the sites' answers: `lambda site: site.hazard_ratio()`; free.

        It is one of many that could be asked for: its interval is for this number alone.
        """
        own = [(one.name, of(one.result)) for one in self.answers]
        sizes = sizes_of([(one.name, one.result) for one in self.answers])
        way = _Way(self.method, self.level, self.weight_limits)
        return way.row(str(own[0][1].name), [(name, one.known) for name, one in own], sizes).effect

    def interval(self, level: float | None = None, simultaneous: bool = False) -> dict[str, Ends]:
        """Return every effect's interval by name; with `simultaneous` they hold together (Bonferroni)."""
        return {str(one.name): one.interval(level, simultaneous) for one in self.table}

    @property
    def _compared(self) -> Sequence[Effect]:
        return [one for one in self.table if isinstance(one.known, Linear)]

    def _columns(self) -> list[dict[str, Any]]:
        return [
            {"effect": row.effect.name, "sites": len(row.weights), "estimand": self.estimand.value}
            for row in self.rows
        ]

    def _shown(self) -> dict[str, Any]:
        return {
            "sentence": f"{self.estimand.sentence}; averages over {len(self.answers)} sites",
            "effects": [row.facts() for row in self.rows],
            "notes": [*self._notes()],
        }

    def _notes(self) -> Iterator[tuple[str, str]]:
        yield "Average", f"{METHOD_TEXTS[self.method]}, row by row; intervals for all rows are Bonferroni's"
        if isinstance(self.answers[0].result, SurvivalResult):
            yield "Hazard ratio", said(self.average(lambda site: site.hazard_ratio()))
        for row in self.rows:
            weights = ", ".join(f"{site} {weight:.0%}" for site, weight in row.weights.items())
            found = row.heterogeneity
            yield (
                str(row.effect.name),
                f"weights {weights}; sites differ: I^2 = {found.i_squared:.0%}, p = {probability(found.p_value)}",
            )
        if self.left_out:
            yield "Left out", f"{'; '.join(self.left_out)}: of one site alone"

    def report_facts(self) -> dict[str, Any]:
        """Return what reports and pictures show: the facts of `to_dict`, and how sites are weighed."""
        return self.to_dict() | {"method": METHOD_TEXTS[self.method]}

    @classmethod
    def from_dict(cls, facts: dict[str, Any]) -> Self:
        """Return what `to_dict` wrote, pooled again from the sites' answers in it."""
        with refusing(cls):
            for one in facts["answers"]:
                result = one["result"]
                check_document(result | {"kind": result["is"]})
        return read(cls, facts)

    @classmethod
    def _made(
        cls,
        method: str,
        level: float,
        answers: tuple[PooledAnswer, ...],
        weight_limits: WeightLimits | None,
        **_: Any,
    ) -> PooledTable:
        found = pool_answers({one.name: one.result for one in answers}, method, level, weight_limits)
        return cast("PooledTable", found)


def pool(
    results: Sources,
    *,
    method: str = "mvagg",
    level: float = 0.95,
    weight_limits: WeightLimits | None = None,
) -> PooledResult | MeasureResult | PooledTable | PooledMoments:
    """Return the average of the private effects of several sites; spends nothing.

    Ratios, odds ratios and lifts are those of the arms' means, averaged by size; numbers needed to treat that sites
    were asked for are those of the average difference, and `as_measure("nnt")` of pooled ratios gives them too.
    Answers of several effects are pooled row by row; second moments are added up, and regressions fitted once.

    Args:
        results: results of `ate`, `arms`, `groups`, `outcomes`, `survival` or `moments`, what their `to_dict` gave,
            or paths of JSON files; a mapping names the sites. All answer the same question, and nobody is in two sites.
        method: "mvagg" (the subset of sites with the least variance, weights by size), "ivw" (all sites,
            inverse variances), "all" (all sites, weights by size), "largest" (that site alone) or
            "random_effects" (the mean of sites whose effects may differ; the noisiest are left out).
        level: confidence level of the interval.
        weight_limits: for sites that do not trust each other: the most weight of each. Weights then follow sizes
            and the scales of the noise, not the variances that sites report.
    """
    level = check_level(level)
    check_method(method)
    if kind_of_all(results) is not None:
        return pool_answers(results, method, level, weight_limits)
    return pool_one(results, method, level, weight_limits)


def pool_answers(
    sources: Any, method: str, level: float, bounds: WeightLimits | None
) -> PooledTable | PooledMoments:
    """Return the answers of several sites as one: tables row by row, moments added up."""
    sites = named(sources, read_answer)
    check_agreement(sites)
    if all(isinstance(result, Moments) for _, result in sites):
        return added_up(sites, method, level, bounds)
    return _pooled_table(sites, method, level, bounds)


def _pooled_table(
    sites: list[tuple[str, Any]], method: str, level: float, bounds: WeightLimits | None
) -> PooledTable:
    numbers = {site: numbers_of(result) for site, result in sites}
    names = list(dict.fromkeys(name for own in numbers.values() for name in own))
    found = {name: [site for site, own in numbers.items() if name in own] for name in names}
    kept = [name for name in names if len(found[name]) > 1]
    if not kept:
        raise no_result(sites[1][0], "no effect that another site has")
    first, by_name = sites[0][1], dict(sites)
    whole = dict(zip(by_name, sizes_of(sites), strict=True))
    way = _Way(method, level, bounds, len(kept), getattr(first, "measure", DIFFERENCE))
    rows = []
    for name in kept:
        sizes = np.array([_size(by_name[site], name, whole[site]) for site in found[name]])
        rows.append(way.row(name, [(site, numbers[site][name]) for site in found[name]], sizes))
    weighed = {site for row in rows for site, weight in row.weights.items() if weight > 0}
    return PooledTable(
        answers=tuple(PooledAnswer(*one) for one in sites),
        rows=tuple(rows),
        left_out=tuple(name for name in names if name not in kept),
        weight_limits=bounds,
        estimand=getattr(first, "estimand", Estimand.ATE),
        level=level,
        **_provenance(sites, method),
        not_covered=pooled_caveats(sites, [name for name, _ in sites if name not in weighed]),
        details=_details(
            whole.values(), {} if way.measure == DIFFERENCE else {"measure": NAMES[way.measure]}
        ),
        **pooled_opening([one for one in sites if one[0] in weighed]),
    )


def _provenance(sites: Answers, method: str) -> dict[str, Any]:
    first = sites[0][1]
    return {
        "guarantee": pooled_guarantee(sites),
        "spent": pooled_spending(sites),
        "treatment": first.treatment,
        "outcome": first.outcome,
        "releases": tuple(
            (name, f"{getattr(result, 'method', 'moments')}, {result.spent}") for name, result in sites
        ),
    } | ({} if isinstance(first, Moments) else {"method": method})


def _details(sizes: Iterable[float], more: Mapping[str, float | str]) -> dict[str, float | str]:
    numbers = [*sizes]
    return {"rows": int(sum(numbers)), "sites": len(numbers), **more}


def _size(answer: Any, name: str, rows: float) -> float:
    """Return how many people a row is about where that is public, else those of the site."""
    for one in answer.groups if isinstance(answer, GroupsResult) else ():
        if one.name == name and one.size is not None and one.size_sd == 0:
            return max(float(one.size), 1.0)
    return rows


# Second moments: sums over people, so those of sites add up, and regressions are fitted once.


@dataclass(frozen=True, slots=True)
class MomentsPart:
    """One site's moments and their weight in the sum."""

    name: str
    weight: float
    result: Moments


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PooledMoments(Moments):
    """Second moments of several sites, added up; regressions over all of them are free.

    `site` in a formula is which site a row is of: "y ~ treat + age | site" compares people within sites. `rows` is how
    many rows of one site would be as precise, all of them where no weight is held.
    """

    _DERIVED: ClassVar[tuple[str, ...]] = ("basis", "matrix", "noise_sd")

    answers: tuple[MomentsPart, ...]
    weight_limits: WeightLimits | None = None

    def _noisy(self) -> NoisyMoments:
        return _summed(self.answers)[1]

    def _farthest(self, formula: Formula, fit: LinearFit) -> float | None:  # noqa: ARG002 - sites have other units
        return None

    @classmethod
    def _made(
        cls, level: float, answers: tuple[MomentsPart, ...], weight_limits: WeightLimits | None, **_: Any
    ) -> PooledMoments:
        return added_up([(one.name, one.result) for one in answers], "all", level, weight_limits)


def added_up(
    sites: list[tuple[str, Any]], method: str, level: float, bounds: WeightLimits | None
) -> PooledMoments:
    """Return the sum of sites' moments, by numbers of rows; no weight is above its limit."""
    if method not in ("all", "mvagg"):
        raise refusal("CV-P508", methods="'all'", method=method)
    sizes = np.array([float(one.rows) for _, one in sites])
    weights = held(sites, 1 / sizes, sizes, "all", bounds)
    parts = tuple(
        MomentsPart(name, float(weight), one) for (name, one), weight in zip(sites, weights, strict=True)
    )
    try:
        basis, moments = _summed(parts)
    except np.linalg.LinAlgError:
        raise no_result(sites[0][0], "moments in columns that depend on each other") from None
    first = sites[0][1]
    indicators = tuple(f"{_SITE}={name}" for name, _ in sites[1:])
    noise = [moments.crossed(unit, unit).diagonal() for unit in np.eye(len(basis))]
    return PooledMoments(
        answers=parts,
        weight_limits=bounds,
        columns=(*first.columns, *indicators),
        groups=(*first.groups, *(((_SITE, indicators),) if _SITE not in first.columns else ())),
        basis=_tuples(basis),
        matrix=_tuples(moments.matrix),
        noise_sd=_tuples(np.sqrt(np.maximum(np.array(noise), 0.0))),
        rows=moments.rows,
        level=level,
        **_provenance(sites, method),
        not_covered=pooled_caveats(sites, []),
        details=_details(sizes, {f"weight_{one.name}": one.weight for one in parts}),
    )


def _summed(parts: Sequence[MomentsPart]) -> tuple[Floats, SummedMoments]:
    """Return the basis of the columns, sites' indicators last, and the moments of all sites in working columns.

    Working columns are those of the first site, whose first is the constant, and the indicators.
    """
    bases = [np.array(one.result.basis) for one in parts]
    size, more = len(bases[0]), len(parts) - 1
    turned = []
    for place, (part, own) in enumerate(zip(parts, bases, strict=True)):
        turn = np.zeros((size + more, size))
        turn[:size] = np.linalg.solve(bases[0], own)
        if place:
            turn[size + place - 1] = own[0]  # the constant
        turned.append((part.weight, turn, part.result._noisy()))
    matrix = np.sum([weight * turn @ one.matrix @ turn.T for weight, turn, one in turned], axis=0)
    whole = 1 / sum(weight**2 / one.rows for weight, _, one in turned)
    basis = np.eye(size + more)
    basis[:size, :size] = bases[0]
    matrix = (matrix + matrix.T) / 2
    return basis, SummedMoments(matrix, np.zeros_like(matrix), max(int(whole + 1e-6), 1), tuple(turned))


def _tuples(matrix: Floats) -> Matrix:
    return tuple(tuple(float(value) for value in row) for row in matrix)
