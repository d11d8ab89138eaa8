"""A question under the auditor: the worst pair of neighbours, and the testers that look at what passes the gate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np

from counterveil.audit import LowerBound, Mechanism, Quantity
from counterveil.audit.report import ROUNDING, FloatArray, Pair
from counterveil.data import silence
from counterveil.errors import refusal
from counterveil.mechanisms import (
    Ball,
    Box,
    Gaussian,
    RandomizedResponse,
    ScaledNoise,
    SeededNoise,
    StableHistogram,
)
from counterveil.privacy import Budget
from counterveil_lab.attacks.asking import Computation, Question, Watch, ask
from counterveil_lab.attacks.losses import Loss, beyond, log_ratio, worst
from counterveil_lab.attacks.neighbours import Pool
from counterveil_lab.attacks.watching import WEAKER, Passed, fewer_lies, moved

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
