"""Published claims that fail: each with the neighbours on which it fails, run under the same testers as ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, log, sqrt
from typing import Any

import numpy as np

from counterveil.audit import ExactTester, Given, Line, LowerBound, Tester, ThresholdTester
from counterveil.audit.report import FloatArray, Mechanism, Pair
from counterveil.privacy import Budget

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
