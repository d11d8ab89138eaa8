"""The runner: every tester on every pair, on the mechanism and on a copy with a third of its noise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from counterveil.audit.protocols import Mechanism, Neighbours, Pair, Tester, nothing_to_audit, out_of_range
from counterveil.audit.report import AuditReport, AuditRow, Finding, Verdict
from counterveil.errors import ParameterError
from counterveil.privacy import Budget


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

    def worst(index: int, tester: Tester, examined: Mechanism, copy: int) -> Finding:
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


def judge(ours: Finding, weakened: Finding) -> Verdict:
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
        raise nothing_to_audit(f"{len(pairs)} pairs and {len(testers)} testers")
    if weakened is mechanism:
        raise ParameterError(
            "CV-A008",
            "the weakened copy is the mechanism itself",
            expected="a copy with a third of the noise, which a good audit must catch",
            got="the same object twice",
            fix="pass mechanism.with_noise_factor(1 / 3), or build the copy by hand",
        )
