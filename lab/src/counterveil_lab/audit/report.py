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
    """The outcome of an audit; nothing is "passed" unless the same attack caught a weakened copy.

    Attributes
    ----------
    VIOLATED : str
        "violated": a true lower bound lies above the claim.
    PASSED : str
        "passed": no tester broke the claim, and each broke the weakened copy.
    INCONCLUSIVE : str
        "inconclusive": no violation was found, and the audit lacks the power to rule one out.
    """

    VIOLATED = "violated"
    PASSED = "passed"
    INCONCLUSIVE = "inconclusive"


class Quantity(StrEnum):
    """Which half of a claim a lower bound is about.

    Attributes
    ----------
    EPSILON : str
        "epsilon", at the claimed delta.
    DELTA : str
        "delta", at the claimed epsilon.
    DIFFERENCES : str
        "differences": channels in which two runs differ that should show the same.
    CHANGE : str
        "change": how far one person moves a statistic, in units of its declared bound.
    """

    EPSILON = "epsilon"
    DELTA = "delta"
    DIFFERENCES = "differences"  # channels in which two runs differ that should show the same
    CHANGE = "change"


# Log densities and sums are floats; a claim met with equality must not fail in the last digits.
ROUNDING = 1e-9

# A numerical error above this share of the claim decides nothing.
COARSE = 1e-3


@dataclass(frozen=True, slots=True)
class LowerBound:
    """A lower bound on the true epsilon (or delta) of one mechanism on one pair of neighbours.

    Attributes
    ----------
    tester : str
        Name of the tester.
    quantity : Quantity
        Whether the bound is on epsilon or on delta.
    found : float
        The bound.
    claimed : float
        What it is compared with.
    confidence : float
        Probability with which the bound is right; 1 for bounds that involve no chance.
    witness : str
        Where the bound was found, in words.
    accuracy : float, default 0.0
        Numerical uncertainty above `found`.
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
        """Return the finding as JSON-ready facts.

        Returns
        -------
        dict
            The attributes and whether the claim is violated; an infinite bound is the text "infinite".
        """
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
    """What one tester found.

    Attributes
    ----------
    tester : str
        Name of the tester.
    ours : LowerBound
        Its strongest finding on the mechanism.
    weakened : LowerBound
        Its strongest finding on the copy with a third of the noise.
    verdict : Verdict
        What follows.
    """

    tester: str
    ours: LowerBound
    weakened: LowerBound
    verdict: Verdict

    def cells(self) -> tuple[str, ...]:
        """Return the row's texts, in the order of the table's headings.

        Returns
        -------
        tuple of str
            Tester, quantity, claim, what was found on the mechanism and on the copy, verdict.
        """
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
    """The findings of all testers against one claim; print it for the table.

    Attributes
    ----------
    name : str
        Name of the mechanism.
    claim : Budget
        The claimed epsilon and delta.
    rows : tuple of AuditRow
        One row a tester.
    pairs : int
        Number of pairs of neighbours that were examined.
    confidence : float
        Probability with which all bounds hold together.
    """

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
        """Return the report as JSON-ready facts.

        Returns
        -------
        dict
            Name, claim, number of pairs, confidence, verdict, and the findings of each tester.
        """
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
    """Something that releases a number or a vector from a data set; any object with this method can be
    audited.
    """

    def sample(self, dataset: Any, count: int, rng: np.random.Generator, /) -> FloatArray:
        """Return independent releases.

        Parameters
        ----------
        dataset : object
            A data set, as the pairs of neighbours hold them.
        count : int
            Number of releases.
        rng : numpy.random.Generator
            Where randomness comes from.

        Returns
        -------
        ndarray of shape (count,) or (count, d)
            Numbers or vectors.
        """
        ...


@runtime_checkable
class WhiteBox(Mechanism, Protocol):
    """A mechanism whose distribution is known in closed form."""

    def log_density(self, dataset: Any, outputs: FloatArray, /) -> FloatArray:
        """Return the log density, or for a discrete distribution the log probability, at outputs.

        Parameters
        ----------
        dataset : object
            A data set, as the pairs of neighbours hold them.
        outputs : ndarray of shape (m,) or (m, d)
            Numbers or vectors.

        Returns
        -------
        ndarray of shape (m,)
            Log densities.
        """
        ...


# Pairs of neighbouring data sets, the same ones each time.
Neighbours: TypeAlias = Iterable[Pair]


class Tester(Protocol):
    """One way of attacking a claim."""

    @property
    def name(self) -> str:
        """Name shown in reports."""
        ...

    def examine(
        self, mechanism: Mechanism, pair: Pair, claim: Budget, *, error: float, rng: np.random.Generator
    ) -> LowerBound:
        """Return what one attack on one pair of neighbours found.

        Parameters
        ----------
        mechanism : Mechanism
            What is attacked.
        pair : (object, object)
            Neighbouring data sets.
        claim : Budget
            The claimed epsilon and delta.
        error : float
            Probability with which the bound may be wrong, above 0 and below 1.
        rng : numpy.random.Generator
            Where randomness comes from.

        Returns
        -------
        LowerBound
            The bound and where it was found.
        """
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
    """Attack a privacy claim, and a copy with a third of the noise that every attack must catch.

    A tester's row is "violated" if it breaks the claim on any pair, "passed" if it does not and the same
    tester breaks the weakened copy, and "inconclusive" otherwise.

    Parameters
    ----------
    claim : Budget
        The claimed epsilon and delta.
    mechanism : Mechanism
        An object with ``sample(dataset, count, rng)``; some testers need ``log_density`` or ``scores``.
    weakened : Mechanism
        The same mechanism with a third of the noise.
    neighbours : iterable of (object, object)
        Pairs of neighbouring data sets, or a `Universe`.
    testers : sequence of Tester
        `ThresholdTester`, `ExactTester`, `OneRunTester`, or objects of your own.
    seed : int
        Seed of the audit; each examination has a stream of its own.
    confidence : float, default 0.999
        Probability with which no true claim is called violated, above 0 and below 1; shared among pairs and
        testers.
    name : str, optional
        Name of the mechanism in the report. Default: the name of its class.

    Returns
    -------
    AuditReport
        Findings and verdict; print it for the table.

    Raises
    ------
    CounterveilError
        Arguments or outputs that cannot be audited (CV-A001 to CV-A008).

    Examples
    --------
    >>> import numpy as np
    >>> from counterveil_lab.audit import ThresholdTester, audit
    >>> from counterveil.privacy import Budget
    >>> class NoisyMean:
    ...     def __init__(self, scale):
    ...         self.scale = scale
    ...     def sample(self, dataset, count, rng):
    ...         return np.mean(dataset) + rng.laplace(0, self.scale, count)
    >>> pair = ((0,) * 10, (0,) * 9 + (1,))  # the neighbours that differ most
    >>> report = audit(
    ...     Budget(1), NoisyMean(1 / 10), NoisyMean(1 / 30), [pair], [ThresholdTester(20_000)], seed=1
    ... )
    >>> report.passed
    True
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
