"""The three protocols that the auditor uses, and the runner: every tester on every pair, and on a third of the noise.

Anything with a `sample` method can be audited from outside (black box); with a `log_density` as
well, from inside (white box). A data set is whatever the mechanism takes: the auditor never looks in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from counterveil.audit.report import AuditReport, AuditRow, LowerBound, Verdict
from counterveil.errors import CounterveilError, refusal
from counterveil.privacy import Budget

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


class Neighbours(Protocol):
    """Pairs of neighbouring data sets; a list of tuples will do."""

    def __iter__(self) -> Iterator[Pair]:
        """Yield the pairs, the same ones each time."""
        ...


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


# The auditor's refusals, and the checks that several testers share.


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
