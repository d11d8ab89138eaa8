"""Replay of more than one question: an account that two studies use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from counterveil.accounting import open_ledger
from counterveil.audit import AuditReport, AuditRow, LowerBound, Quantity
from counterveil.audit.report import judge
from counterveil.data import Binary, Range, Study
from counterveil.mechanisms import BitSource, SeededNoise
from counterveil.privacy import Budget
from counterveil.questions.session import Session
from counterveil_lab.attacks.asking import (
    Question,
    Seen,
    Watch,
    WatchedCurator,
    ask_session,
    noted_error,
    overheard,
)

Columns = dict[str, Any]
Play = Callable[[Columns, Watch, BitSource, bool], Seen]
_ROWS = 40


@dataclass(frozen=True)
class Scenario:
    """What is done to two neighbouring data sets, with everything that whoever does it can see.

    `play(data, watch, source, open_handed)` does it; what it shows must be the same on both. Open-handed it skips the
    rule that is under test, and the two must then differ: this is the power of the audit.
    """

    name: str
    unit: str
    pair: tuple[Columns, Columns]
    play: Play

    def examine(self, seed: int) -> AuditReport:
        """Return the audit: the channels in which the neighbours differ, with the rule and without it."""
        ours, theirs = (self._finding(seed, open_handed) for open_handed in (False, True))
        row = AuditRow("replay", ours, theirs, judge(ours, theirs))
        return AuditReport(self.name, Budget(1), (row,), 1, 1.0)

    def _finding(self, seed: int, open_handed: bool) -> LowerBound:
        found = self.differences(seed, open_handed)
        witness = "; ".join(found) or "nothing differs"
        return LowerBound("replay", Quantity.DIFFERENCES, len(found), 0.0, 1.0, witness)

    def differences(self, seed: int, open_handed: bool = False) -> list[str]:
        """Return the channels in which the two data sets look different though they release the same."""
        first = Watch()
        seen = self.play(self.pair[0], first, SeededNoise(seed), open_handed)
        second = Watch(forced=first.releases)
        return seen.differences(self.play(self.pair[1], second, SeededNoise(seed), open_handed))


# One account, two studies: what the first protects, the second must not show.


_AGE = {"age": Range(18, 90)}


def _patients() -> Columns:
    draw = np.random.default_rng(7)
    treated = draw.permutation([0, 1] * (_ROWS // 2))
    return {
        "treated": treated,
        "relapse": draw.binomial(1, 0.4, _ROWS).astype(float),
        "cost": draw.uniform(0, 100, _ROWS),
        "age": draw.uniform(20, 80, _ROWS),
    }


def _other_relapse(columns: Columns) -> Columns:
    relapse = columns["relapse"].copy()
    relapse[0] = 1 - relapse[0]
    return columns | {"relapse": relapse}


def _effect(session: Session, **words: Any) -> Any:
    return session.ate(protects="outcome", **words)


def _by_relapse(session: Session, **words: Any) -> Any:
    return session.groups(by="relapse", protects="outcome", method="difference_in_means", **words)


def _two_studies(data: Columns, watch: Watch, source: BitSource, open_handed: bool) -> Seen:
    """Ask about an outcome, then declare it a covariate whose balance and groups would be printed."""
    first = Study("treated", "relapse", (0, 1), _AGE, control=0, randomised=True)
    second = Study("treated", "cost", (0, 100), _AGE | {"relapse": Binary()}, control=0, randomised=True)
    channels: dict[str, str] = {}
    with overheard(channels), open_ledger(":memory:", create=True) as ledger:
        for step, (study, ask) in enumerate(((first, _effect), (second, _effect), (second, _by_relapse))):
            name = f"people {step}" if open_handed else "people"
            with noted_error(channels, f" {step}"):
                if not any(account.dataset == name for account in ledger.datasets()):
                    ledger.register(name, Budget(100))
                with WatchedCurator(data, study, ledger=ledger, dataset=name, noise=source) as session:
                    question = Question(study, ask, Budget(1))
                    ask_session(question, session.watch(watch), channels, f" {step}")
    return Seen(channels)


SCENARIOS: dict[str, Scenario] = {
    one.name: one
    for one in (
        Scenario("account/two studies", "outcome", (_patients(), _other_relapse(_patients())), _two_studies),
    )
}
