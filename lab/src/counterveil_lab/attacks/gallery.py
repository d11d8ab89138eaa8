"""Published claims that fail, run under the same testers as ours; replay of more than one question."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, log, sqrt
from typing import Any

import numpy as np

from counterveil.accounting import open_ledger
from counterveil.audit import (
    AuditReport,
    AuditRow,
    ExactTester,
    Given,
    Line,
    LowerBound,
    Quantity,
    Tester,
    ThresholdTester,
)
from counterveil.audit.report import FloatArray, Mechanism, Pair, judge
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
# Every entry is to be caught at this confidence; exact testers involve no chance.
CONFIDENCE = 0.95
_SAMPLES = 4000


@dataclass(frozen=True)
class Refuted:
    """A claim, who makes it, the neighbours on which it fails, and what is true instead."""

    name: str
    source: str
    claims: str
    fails: str
    instead: str
    budget: Budget
    mechanism: Mechanism
    pair: Pair
    tester: Tester

    def examine(self, seed: int = 1) -> LowerBound:
        """Return what the tester finds; the claim is broken if the finding says so."""
        rng = np.random.default_rng(seed)
        return self.tester.examine(self.mechanism, self.pair, self.budget, error=1 - CONFIDENCE, rng=rng)


@dataclass(frozen=True)
class Noisy:
    """A number plus noise of which value and scale are functions of the data set."""

    value: Callable[[Any], float]
    scale: Callable[[Any], float]
    gaussian: bool = False

    def sample(self, dataset: Any, count: int, rng: np.random.Generator) -> FloatArray:
        """Return releases by floating-point noise, as such programs draw it."""
        scale = self.scale(dataset)
        noise = rng.normal(0, scale, count) if self.gaussian else rng.laplace(0, scale, count)
        found: FloatArray = self.value(dataset) + noise
        return found

    def log_density(self, dataset: Any, outputs: FloatArray) -> FloatArray:
        """Return the log density of the noise at its place."""
        scale = self.scale(dataset)
        away = np.abs(outputs - self.value(dataset)) / scale
        if self.gaussian:
            return -(away**2) / 2 - log(scale * sqrt(2 * np.pi))
        return -away - log(2 * scale)

    def line(self, pair: Pair) -> Line:
        """Return where the exact tester looks."""
        return Line(
            tuple(self.value(one) for one in pair), max(self.scale(one) for one in pair), reach=1e4, points=80
        )


def exact(
    name: str,
    source: str,
    budget: Budget,
    mechanism: Noisy,
    pair: Pair,
    claims: str,
    fails: str,
    instead: str,
) -> Refuted:
    """Return an entry that the exact tester examines."""
    tester = ExactTester(mechanism.line(pair))
    return Refuted(name, source, claims, fails, instead, budget, mechanism, pair, tester)


def sampled(
    name: str,
    source: str,
    budget: Budget,
    mechanism: Mechanism,
    pair: Pair,
    claims: str,
    fails: str,
    instead: str,
) -> Refuted:
    """Return an entry that is caught by samples alone."""
    tester = ThresholdTester(_SAMPLES, (Given(lambda rows: rows[:, 0]),))
    return Refuted(name, source, claims, fails, instead, budget, mechanism, pair, tester)


@dataclass(frozen=True)
class Claimed:
    """What the gallery says of one entry: the finding, and whether the claim was broken."""

    entry: Refuted
    finding: LowerBound

    @property
    def found(self) -> str:
        """The finding beside the claim, in words."""
        size = "no finite bound" if self.finding.found == inf else f"at least {self.finding.found:.3g}"
        return f"{self.finding.quantity.value} {size}, claimed {self.finding.claimed:g}"

    def to_dict(self) -> dict[str, object]:
        """Return the entry and its finding as JSON-ready facts."""
        entry = self.entry
        said = {name: getattr(entry, name) for name in ("name", "source", "claims", "fails", "instead")}
        return said | {"budget": entry.budget.to_dict(), "finding": self.finding.to_dict()}


def shown(entries: dict[str, Refuted], seed: int = 1) -> list[Claimed]:
    """Return every entry with its finding."""
    return [Claimed(entry, entry.examine(seed)) for entry in entries.values()]


def table(found: list[Claimed]) -> str:
    """Return the gallery as text: for each claim who makes it, where it fails and what is true."""
    parts = []
    for one in found:
        verdict = "refuted" if one.finding.violated else "NOT REFUTED"
        entry = one.entry
        parts.append(
            "\n".join(
                [
                    f"{entry.name}: {verdict}, {one.found}",
                    f"  claim    {entry.source}: {entry.claims}",
                    f"  fails    {entry.fails}",
                    f"  instead  {entry.instead}",
                ]
            )
        )
    broken = sum(one.finding.violated for one in found)
    return "\n\n".join([*parts, f"{broken} of {len(found)} claims refuted at {CONFIDENCE:.0%} confidence"])


_INTRODUCTION = (
    "# Claims that fail\n"
    "\n"
    "Made by `counterveil audit --gallery --page docs/explanation/claims-that-fail.md`; do not edit.\n"
    "\n"
    "Each claim below is run on two neighbouring data sets, under the testers that audit our own releases"
    " ([auditing](auditing.md)). A claim is refuted if a lower bound on its epsilon or delta that holds "
    "with 95% confidence, or exactly, lies above what is claimed. The papers' forms can be run as "
    "printed: [published forms](../reference/published.md).\n"
    "\n"
)


def page(found: list[Claimed]) -> str:
    """Return the gallery as a page."""
    parts = []
    for one in found:
        entry = one.entry
        parts.append(
            f"## {entry.name[0].upper()}{entry.name[1:]}\n\n"
            f"- **Who:** {entry.source}.\n"
            f"- **Claim:** {entry.claims}.\n"
            f"- **Fails:** {entry.fails}.\n"
            f"- **Found:** {one.found} ({one.finding.tester} tester).\n"
            f"- **Instead:** {entry.instead}.\n"
        )
    return _INTRODUCTION + "\n".join(parts)
