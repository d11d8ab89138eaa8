"""Audits by name: what is examined, with which testers, and the table and page of everything together."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context

from counterveil.attacks.canaries import CANARIES, Canaries
from counterveil.attacks.catalogue import CATALOGUE, Audited
from counterveil.attacks.mechanisms import MECHANISMS, AuditedMechanism
from counterveil.attacks.release import LossTester, ReplayTester, worst_pair
from counterveil.attacks.scenarios import SCENARIOS, Scenario
from counterveil.audit import AuditReport, Given, Tester, ThresholdTester, Verdict, audit
from counterveil.errors import ParameterError, shown
from counterveil.privacy import Budget, Number

# With this probability no sound form of one audit is called violated.
CONFIDENCE = 0.999
_FIRST = Given(lambda rows: rows[:, 0])
Anything = Audited | AuditedMechanism | Canaries | Scenario
EVERYTHING: dict[str, Anything] = {**MECHANISMS, **CATALOGUE, **CANARIES, **SCENARIOS}


@dataclass(frozen=True)
class Examined:
    """One audited thing: its name, what its neighbours differ in, the report, and what it cost."""

    name: str
    unit: str
    report: AuditReport
    seconds: float

    @property
    def verdict(self) -> Verdict:
        """The verdict of the report."""
        return self.report.verdict

    def to_dict(self) -> dict[str, object]:
        """Return everything as JSON-ready facts."""
        return {"name": self.name, "unit": self.unit, "cpu_seconds": self.seconds} | self.report.to_dict()


def chosen(words: list[str], everything: bool) -> dict[str, Anything]:
    """Return what is audited: all, or what has one of the words for its name or a part of it."""
    if everything:
        return dict(EVERYTHING)
    found = {
        name: one
        for name, one in EVERYTHING.items()
        if any(word == name or word in name.split("/") for word in words)
    }
    unknown = [
        word for word in words if not any(word == name or word in name.split("/") for name in EVERYTHING)
    ]
    if unknown or not found:
        raise ParameterError(
            "CV-A009",
            "nothing of this name is audited",
            expected="a method, a question or a name that `counterveil audit --list` shows",
            got=shown(unknown[0]) if unknown else "no name",
            fix="name one of them, or pass --all",
        )
    return found


def examine(
    one: Anything, *, budget: Budget | None = None, samples: int | None = None, seed: int = 1
) -> Examined:
    """Return the audit of one thing, at another budget or with another number of samples if given."""
    began = time.process_time()
    if isinstance(one, AuditedMechanism):
        report, unit = examine_mechanism(one, samples, seed), "value"
    elif isinstance(one, Canaries | Scenario):
        report, unit = one.examine(seed), one.unit
    else:
        report, unit = examine_form(one, budget, samples, seed), one.unit
    return Examined(report.name, unit, report, time.process_time() - began)


def examine_mechanism(one: AuditedMechanism, samples: int | None = None, seed: int = 1) -> AuditReport:
    """Return the audit of a mechanism, at the budget that its noise was made for."""
    testers = one.testers(
        samples or one.samples
    )  # a quick audit takes usual samples of a mechanism: they are cheap
    return audit(
        one.claim,
        one.ours,
        one.weakened,
        one.pairs,
        testers,
        seed=seed,
        confidence=CONFIDENCE,
        name=f"mechanism/{one.name}",
    )


def examine_form(
    one: Audited, budget: Budget | None = None, samples: int | None = None, seed: int = 1
) -> AuditReport:
    """Return the audit of a form of a question on the worst of its neighbours; no samples leave the bet on them out."""
    claim = budget or one.budget
    release, tried = worst_pair(one.asked(claim), one.pools(), seed)
    testers: list[Tester] = [LossTester(tried=tried), ReplayTester()]
    runs = one.samples if samples is None else samples
    if runs:
        testers.insert(1, ThresholdTester(runs, (_FIRST,), name="likelihood ratio"))
    report = audit(
        claim, release, release.weakened(), [(0, 1)], testers, seed=seed, confidence=CONFIDENCE, name=one.name
    )
    return replace(report, pairs=tried)


def examine_all(
    things: dict[str, Anything],
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    samples: int | None = None,
    seed: int = 1,
    jobs: int = 1,
) -> Iterator[Examined]:
    """Yield the audits in their order, several at a time where there are several jobs."""
    budgets = [_budget(one, epsilon, delta) for one in things.values()]
    asked = [(name, budget, samples, seed) for name, budget in zip(things, budgets, strict=True)]
    if jobs == 1 or len(asked) == 1:
        yield from (_examined(one) for one in asked)
        return
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        yield from pool.map(_examined, asked)


def _examined(asked: tuple[str, Budget | None, int | None, int]) -> Examined:
    name, budget, samples, seed = asked
    return examine(EVERYTHING[name], budget=budget, samples=samples, seed=seed)


def _budget(one: Anything, epsilon: Number | None, delta: Number | None) -> Budget | None:
    """Return the budget of a form that was asked for, None where its own is."""
    if not isinstance(one, Audited) or (epsilon is None and delta is None):
        return None
    usual = one.budget
    return Budget(usual.epsilon if epsilon is None else epsilon, usual.delta if delta is None else delta)
