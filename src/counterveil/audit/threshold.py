"""A black-box tester: bet on an event chosen on half of the samples, and count on the other half."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from counterveil.audit.binomial import log_excess, lower_bound, upper_bound
from counterveil.audit.events import Event, choose_events
from counterveil.audit.finding import Finding, Quantity
from counterveil.audit.projections import Given, LinearDiscriminant, Projection
from counterveil.audit.protocols import FloatArray, Mechanism, Pair
from counterveil.audit.refusals import draw, out_of_range
from counterveil.privacy import Budget

_FEWEST = 8


@dataclass(frozen=True, slots=True)
class ThresholdTester:
    """A lower bound on epsilon from samples alone.

    (epsilon, delta)-DP says P(E) <= e^epsilon Q(E) + delta for every event E. Events are chosen on the
    training half. On the other half, Clopper-Pearson limits p <= P(E) and q >= Q(E) hold together for
    every event and both directions with probability 1 - error (Bonferroni), and so does
    epsilon >= ln((p - delta) / q).

    `samples` are drawn from each data set. `projections` turn vectors into scores; left empty, numbers
    are taken as they are and vectors are projected on a trained linear discriminant.
    """

    samples: int = 100_000
    projections: tuple[Projection, ...] = ()
    name: str = "threshold"

    def __post_init__(self) -> None:
        if self.samples < _FEWEST:
            raise out_of_range("samples", self.samples, f"at least {_FEWEST}", "ask for 100000 samples or so")

    def examine(
        self, mechanism: Mechanism, pair: Pair, claim: Budget, *, error: float, rng: np.random.Generator
    ) -> Finding:
        """Return the best lower bound on epsilon at the claimed delta, right with probability 1 - `error`."""
        if not 0 < error < 1:
            raise out_of_range("error", error, "a probability above 0 and below 1", "use 0.001 or so")
        delta = float(claim.delta)
        outputs = draw(mechanism, pair, self.samples, rng)
        cut = self.samples // 2
        training = (outputs[0][:cut], outputs[1][:cut])
        testing = (outputs[0][cut:], outputs[1][cut:])
        bets: list[tuple[Event, FloatArray, FloatArray, str]] = []
        for projection in self._projections(outputs[0].shape[1]):
            score = projection.train(mechanism, pair, *training)
            trained, tested = [score(x) for x in training], [score(x) for x in testing]
            for p, q, side in ((0, 1, "first"), (1, 0, "second")):
                events = choose_events(trained[p], trained[q], delta, error)
                bets += [(event, tested[p], tested[q], side) for event in events]
        return self._settle(bets, claim, error)

    def _projections(self, dimensions: int) -> tuple[Projection, ...]:
        if self.projections:
            return self.projections
        return (Given(lambda outputs: outputs[:, 0]),) if dimensions == 1 else (LinearDiscriminant(),)

    def _settle(
        self, bets: list[tuple[Event, FloatArray, FloatArray, str]], claim: Budget, error: float
    ) -> Finding:
        trials = len(bets[0][1])
        hits_p = np.array([event.hits(p) for event, p, _, _ in bets], dtype=np.float64)
        hits_q = np.array([event.hits(q) for event, _, q, _ in bets], dtype=np.float64)
        # Two limits for each bet share the error.
        share = error / (2 * len(bets))
        low, high = lower_bound(hits_p, trials, share), upper_bound(hits_q, trials, share)
        bounds = log_excess(low, high, float(claim.delta))
        best = int(np.argmax(bounds))
        event, _, _, side = bets[best]
        witness = (
            f"{event}: {int(hits_p[best])} of {trials} on the {side} data set (at least {low[best]:.4g}), "
            f"{int(hits_q[best])} of {trials} on its neighbour (at most {high[best]:.4g})"
        )
        return Finding(
            tester=self.name,
            quantity=Quantity.EPSILON,
            found=float(bounds[best]),
            claimed=float(claim.epsilon),
            confidence=1 - error,
            witness=witness,
        )
