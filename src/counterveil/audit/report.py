"""What an audit examines, and what it says, as text and as data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from counterveil.errors import CounterveilError, refusal
from counterveil.privacy import Budget


class Verdict(StrEnum):
    """The outcome of an audit; nothing is `passed` unless the same attack caught a weakened copy."""

    VIOLATED = "violated"
    PASSED = "passed"
    INCONCLUSIVE = "inconclusive"


class Quantity(StrEnum):
    """Which half of the claim a lower bound is about."""

    EPSILON = "epsilon"
    DELTA = "delta"
    DIFFERENCES = "differences"  # channels in which two runs differ that should show the same


# Log densities and sums are floats; a claim met with equality must not fail in the last digits.
ROUNDING = 1e-9

# A numerical error above this share of the claim decides nothing.
COARSE = 1e-3


@dataclass(frozen=True, slots=True)
class LowerBound:
    """A lower bound on the true epsilon (or delta) of one mechanism on one pair of neighbours.

    `found` is the bound, `claimed` what it is held against, `confidence` the probability with which
    the bound is right (1 for bounds that involve no chance), `accuracy` the numerical uncertainty above
    `found`, and `witness` says in words where the bound was found.
    """

    tester: str
    quantity: Quantity
    found: float
    claimed: float
    confidence: float
    witness: str
    accuracy: float = 0.0

    @property
    def violated(self) -> bool:
        """Whether the claim is broken."""
        return self.found > self.claimed * (1 + ROUNDING)

    @property
    def resolved(self) -> bool:
        """Whether the numerical uncertainty is small enough to decide anything."""
        return self.accuracy <= COARSE * self.claimed

    @property
    def verdict(self) -> Verdict:
        """Violated or inconclusive: one attack alone has shown no power, so it can never pass anything."""
        return Verdict.VIOLATED if self.violated else Verdict.INCONCLUSIVE

    def to_dict(self) -> dict[str, str | float | bool]:
        """Return the finding as JSON-ready facts; an infinite bound becomes the text `infinite`."""
        found = self.found if math.isfinite(self.found) else "infinite"
        return asdict(self) | {"quantity": self.quantity.value, "found": found, "violated": self.violated}


_HEADINGS = ("tester", "measures", "claim", "found", "found at 1/3 noise", "verdict")

_SENTENCES = {
    Verdict.VIOLATED: "the claim is broken: a true lower bound lies above it",
    Verdict.PASSED: "no tester broke the claim, and each of them broke a copy with a third of the noise",
    Verdict.INCONCLUSIVE: "no violation was found, but the audit lacks the power or the accuracy to rule one out",
}


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One tester: its strongest finding on the mechanism, on the weakened copy, and the verdict."""

    tester: str
    ours: LowerBound
    weakened: LowerBound
    verdict: Verdict

    def cells(self) -> tuple[str, ...]:
        """Return the row's texts, in the order of the table's headings."""
        return (
            self.tester,
            self.ours.quantity.value,
            f"{self.ours.claimed:.4g}",
            _bound(self.ours.found),
            _bound(self.weakened.found),
            self.verdict.value,
        )


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The findings of all testers against one claim; `print` shows the table."""

    name: str
    claim: Budget
    rows: tuple[AuditRow, ...]
    pairs: int
    confidence: float

    @property
    def verdict(self) -> Verdict:
        """Violated if any tester says so; passed only if all of them do."""
        verdicts = {row.verdict for row in self.rows}
        if Verdict.VIOLATED in verdicts:
            return Verdict.VIOLATED
        return Verdict.PASSED if verdicts == {Verdict.PASSED} else Verdict.INCONCLUSIVE

    @property
    def passed(self) -> bool:
        """Whether every tester passed the mechanism and showed its power."""
        return self.verdict is Verdict.PASSED

    def to_dict(self) -> dict[str, object]:
        """Return the report as JSON-ready facts."""
        return {
            "name": self.name,
            "claim": self.claim.to_dict(),
            "pairs": self.pairs,
            "confidence": self.confidence,
            "verdict": self.verdict.value,
            "testers": [
                {
                    "tester": row.tester,
                    "verdict": row.verdict.value,
                    "ours": row.ours.to_dict(),
                    "weakened": row.weakened.to_dict(),
                }
                for row in self.rows
            ],
        }

    def __str__(self) -> str:
        cells = [_HEADINGS, *(row.cells() for row in self.rows)]
        widths = [max(len(line[k]) for line in cells) for k in range(len(_HEADINGS))]
        lines = [
            "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) for line in cells
        ]
        rule = "-" * len(lines[0])
        plural = "s" if self.pairs != 1 else ""
        title = f"Audit of {self.name}: {self.claim}; {self.pairs} pair{plural} of neighbours"
        witnesses = [
            f"  {row.tester}: {row.ours.witness}" for row in self.rows if row.verdict is Verdict.VIOLATED
        ]
        end = [f"{self.verdict.value.upper()}: {_SENTENCES[self.verdict]}", *witnesses, self._certainty()]
        return "\n".join(
            [title, rule, lines[0].rstrip(), rule, *(line.rstrip() for line in lines[1:]), rule, *end]
        )

    def _certainty(self) -> str:
        if all(row.ours.confidence == 1 for row in self.rows):
            return "These bounds are deterministic."
        return f"The bounds hold together with probability {self.confidence:g} or more."


def _bound(value: float) -> str:
    return f">= {value:.4g}" if math.isfinite(value) else "infinite"


# The three protocols that the auditor uses, and the runner: every tester on every pair, and on a third of the noise.
#
# Anything with a `sample` method can be audited from outside (black box); with a `log_density` as well, from inside
# (white box). A data set is whatever the mechanism takes: the auditor never looks in.


FloatArray: TypeAlias = NDArray[np.float64]
Pair: TypeAlias = tuple[Any, Any]

# Every audit is repeated on a copy with this share of the noise, which it must catch.
WEAKENED_FACTOR = 1 / 3


@runtime_checkable
class Mechanism(Protocol):
    """Something that releases a number or a vector from a data set."""

    def sample(self, dataset: Any, count: int, rng: np.random.Generator, /) -> FloatArray:
        """Return `count` independent releases: shape (count,) for numbers, (count, d) for vectors."""
        ...


@runtime_checkable
class WhiteBox(Mechanism, Protocol):
    """A mechanism whose distribution is known in closed form."""

    def log_density(self, dataset: Any, outputs: FloatArray, /) -> FloatArray:
        """Return the log density (or log probability, for a discrete distribution) at each output, shape (m,)."""
        ...


# Pairs of neighbouring data sets, the same ones each time.
Neighbours: TypeAlias = Iterable[Pair]


class Tester(Protocol):
    """One way of attacking a claim."""

    @property
    def name(self) -> str:
        """The name shown in reports."""
        ...

    def examine(
        self, mechanism: Mechanism, pair: Pair, claim: Budget, *, error: float, rng: np.random.Generator
    ) -> LowerBound:
        """Return what one attack on one pair found; it may be wrong with probability `error` at most."""
        ...


def needs_density(mechanism: Mechanism) -> CounterveilError:
    """Return the refusal for a white-box test of a mechanism that does not know its distribution."""
    return refusal("CV-A002b", kind=type(mechanism).__name__)


def out_of_range(name: str, value: object, expected: str, fix: str) -> CounterveilError:
    """Return the refusal of an invalid audit setting."""
    return refusal("CV-A001", name=name, expected=expected, value=value, fix=fix)


def draw(
    mechanism: Mechanism, pair: Pair, count: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return `count` releases from each data set of the pair, as matrices of shape (count, d)."""
    first, second = (_draw_one(mechanism, dataset, count, rng) for dataset in pair)
    if first.shape != second.shape:
        raise refusal("CV-A003", got=f"shapes {first.shape} and {second.shape} on two neighbours")
    return first, second


def _draw_one(mechanism: Mechanism, dataset: object, count: int, rng: np.random.Generator) -> FloatArray:
    outputs = np.asarray(mechanism.sample(dataset, count, rng), dtype=np.float64)
    if outputs.ndim not in (1, 2) or outputs.shape[0] != count:
        raise refusal("CV-A003", got=f"shape {outputs.shape} for count={count}")
    if not np.isfinite(outputs).all():
        raise refusal("CV-A003", got="an output that is infinite or not a number")
    return outputs.reshape(count, -1)


def audit(
    claim: Budget,
    mechanism: Mechanism,
    weakened: Mechanism,
    neighbours: Neighbours,
    testers: Sequence[Tester],
    *,
    seed: int,
    confidence: float = 0.999,
    name: str = "",
) -> AuditReport:
    """Return what the testers found on `mechanism` and on `weakened`, its copy with a third of the noise.

    A tester's row is `violated` if the claim is broken on any pair, `passed` if it is not and the same
    tester broke the weakened copy, and `inconclusive` otherwise. With probability `confidence` no true
    claim is called violated: the error is shared among pairs and testers.
    """
    pairs = tuple(neighbours)
    _check(mechanism, weakened, pairs, testers, confidence)
    error = (1 - confidence) / (len(pairs) * len(testers))

    def worst(index: int, tester: Tester, examined: Mechanism, copy: int) -> LowerBound:
        # Each examination has a stream of its own, so that adding a tester changes nothing for the others.
        findings = [
            tester.examine(
                examined, pair, claim, error=error, rng=np.random.default_rng([seed, index, k, copy])
            )
            for k, pair in enumerate(pairs)
        ]
        return max(findings, key=lambda finding: (finding.violated, not finding.resolved, finding.found))

    rows = []
    for index, tester in enumerate(testers):
        ours, theirs = worst(index, tester, mechanism, 0), worst(index, tester, weakened, 1)
        rows.append(AuditRow(tester.name, ours, theirs, judge(ours, theirs)))
    return AuditReport(name or type(mechanism).__name__, claim, tuple(rows), len(pairs), confidence)


def judge(ours: LowerBound, weakened: LowerBound) -> Verdict:
    """Return the verdict: never `passed` unless the weakened copy was caught."""
    if ours.violated:
        return Verdict.VIOLATED
    if weakened.violated and ours.resolved:
        return Verdict.PASSED
    return Verdict.INCONCLUSIVE


def _check(
    mechanism: Mechanism,
    weakened: Mechanism,
    pairs: tuple[Pair, ...],
    testers: Sequence[Tester],
    confidence: float,
) -> None:
    if not 0 < confidence < 1:
        raise out_of_range("confidence", confidence, "above 0 and below 1", "use about 0.999")
    if not pairs or not testers:
        raise refusal("CV-A004", got=f"{len(pairs)} pairs and {len(testers)} testers")
    if weakened is mechanism:
        raise refusal("CV-A008")
