"""A white-box tester: the claim against the mechanism's own density."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from counterveil.audit.profile import Line, Outputs, check_normalised, delta_at, largest_log_ratio
from counterveil.audit.protocols import Mechanism, Pair, WhiteBox, needs_density
from counterveil.audit.report import Finding, Quantity
from counterveil.privacy import Budget

# The integral is asked for this share of the claimed delta.
_RELATIVE_TOLERANCE = 1e-5


@dataclass(frozen=True, slots=True)
class ExactTester:
    """The largest log ratio for a pure claim, the delta profile for one with delta; deterministic.

    `outputs` says where to look: `Line()` for numbers with a density, `Points(...)` for a discrete distribution,
    `Cloud()` for vectors (pure claims).
    """

    outputs: Outputs = field(default_factory=Line)
    name: str = "exact"

    def examine(
        self,
        mechanism: Mechanism,
        pair: Pair,
        claim: Budget,
        *,
        error: float,  # noqa: ARG002
        rng: np.random.Generator,
    ) -> Finding:
        """Return the epsilon found (pure claims) or the delta found at the claimed epsilon."""
        if not isinstance(mechanism, WhiteBox):
            raise needs_density(mechanism)
        return (
            self._pure(mechanism, pair, claim, rng)
            if claim.pure
            else self._approximate(mechanism, pair, claim, rng)
        )

    def _pure(self, mechanism: WhiteBox, pair: Pair, claim: Budget, rng: np.random.Generator) -> Finding:
        if isinstance(self.outputs, Line):
            check_normalised(mechanism, pair, self.outputs, rng)
        ratio = largest_log_ratio(mechanism, pair, self.outputs, rng)
        where = ", ".join(f"{value:.8g}" for value in ratio.output)
        return Finding(
            tester=self.name,
            quantity=Quantity.EPSILON,
            found=ratio.value,
            claimed=float(claim.epsilon),
            confidence=1.0,
            witness=f"output ({where}), {ratio.direction}",
        )

    def _approximate(
        self, mechanism: WhiteBox, pair: Pair, claim: Budget, rng: np.random.Generator
    ) -> Finding:
        epsilon, claimed = float(claim.epsilon), float(claim.delta)
        delta = delta_at(epsilon, mechanism, pair, self.outputs, rng, _RELATIVE_TOLERANCE * claimed)
        return Finding(
            tester=self.name,
            quantity=Quantity.DELTA,
            found=delta.low,
            claimed=claimed,
            confidence=1.0,
            witness=f"hockey-stick divergence at epsilon {epsilon:g}, {delta.direction}",
            accuracy=delta.high - delta.low,
        )
