"""The guarantee that accompanies a released number."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any

from counterveil.privacy.budget import show
from counterveil.privacy.unit import Adjacency, Unit

SIMULATED = "SIMULATED, NOT A PRIVATE RELEASE"


class Proof(StrEnum):
    """How far the guarantee is proved."""

    FINITE_SAMPLE = "finite-sample"
    ASYMPTOTIC = "asymptotic"
    REFUTED = "refuted"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Guarantee:
    """The guarantee of a release: parameters, neighbours, assumptions, and where it is proved."""

    epsilon: Fraction
    delta: Fraction
    unit: Unit
    proof: Proof
    public: tuple[str, ...]
    pages: tuple[str, ...]
    remarks: tuple[str, ...] = ()

    @property
    def adjacency(self) -> Adjacency:
        """The neighbours that are compared."""
        return Adjacency.of(self.unit)

    @property
    def warning(self) -> str | None:
        """The first line of every rendering, if the guarantee is not proved."""
        return {
            Proof.FINITE_SAMPLE: None,
            Proof.ASYMPTOTIC: "NO FINITE-SAMPLE GUARANTEE: the privacy claim is asymptotic only",
            Proof.REFUTED: "NO GUARANTEE: the privacy claim of this form is refuted by a counterexample",
            Proof.NONE: SIMULATED,
        }[self.proof]

    def sentence(self) -> str:
        """Return the guarantee in words."""
        if self.proof is Proof.NONE:
            return f"{SIMULATED}: the noise came from a seed and can be subtracted"
        kind = "pure " if self.delta == 0 else ""
        delta = "" if self.delta == 0 else f", delta = {show(self.delta)}"
        return (
            f"{kind}differential privacy with epsilon = {show(self.epsilon)}{delta}, {self.proof.value}: "
            f"{self.adjacency.sentence}"
        )

    def to_dict(self) -> dict[str, object]:
        """Return the guarantee as JSON-ready facts."""
        return {
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
            "protects": self.unit.value,
            "adjacency": self.adjacency.value,
            "proof": self.proof.value,
            "public": list(self.public),
            "pages": list(self.pages),
            "remarks": list(self.remarks),
            "sentence": self.sentence(),
        }

    @classmethod
    def from_dict(cls, facts: dict[str, Any]) -> Guarantee:
        """Return the guarantee written by `to_dict`."""
        return cls(
            epsilon=Fraction(facts["epsilon"]),
            delta=Fraction(facts["delta"]),
            unit=Unit(facts["protects"]),
            proof=Proof(facts["proof"]),
            public=tuple(facts["public"]),
            pages=tuple(facts["pages"]),
            remarks=tuple(facts["remarks"]),
        )
