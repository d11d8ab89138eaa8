"""The guarantee that accompanies a released number."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from math import exp
from typing import Any

from counterveil.errors import refusal
from counterveil.privacy.budget import show

# What is protected: only a person's outcome, their treatment too, or everything about the person.


class Unit(StrEnum):
    """The unit of protection, as given by `protects=`; each protects what those before it protect."""

    OUTCOME = "outcome"
    TREATMENT_AND_OUTCOME = "treatment and outcome"
    RECORD = "record"

    @property
    def treatment_public(self) -> bool:
        """Whether the treatment of each row, and so the size of each arm, is public."""
        return self is Unit.OUTCOME

    @property
    def covariates_public(self) -> bool:
        """Whether the covariates of each row are public: who took part, and what describes them."""
        return self is not Unit.RECORD

    @classmethod
    def parse(cls, value: object) -> Unit:
        """Return the unit named by `value`, or raise CV-P001."""
        if isinstance(value, str) and value in {member.value for member in cls}:
            return cls(value)
        raise refusal("CV-P001", value=value)


# Which pairs of data sets a guarantee compares.


class Protected(StrEnum):
    """Whose rows are protected together."""

    ROW = "row"
    PERSON = "person"
    CLUSTER = "cluster"


class Adjacency(StrEnum):
    """Neighbouring data sets; the number of rows, people or clusters, and their order never change."""

    CHANGE_OUTCOME = "change-one-outcome"
    REPLACE_RECORD = "replace-one-record"
    CHANGE_OUTCOMES_OF_ROW = "change-outcomes-of-one-row"
    CHANGE_OUTCOMES_OF_PERSON = "change-outcomes-of-one-person"
    REPLACE_PERSON = "replace-all-rows-of-one-person"
    CHANGE_OUTCOMES_OF_CLUSTER = "change-outcomes-of-one-cluster"
    CHANGE_PAIR = "change-treatment-and-outcome-of-one-row"
    REPLACE_CLUSTER = "replace-all-rows-of-one-cluster"

    @classmethod
    def of(cls, unit: Unit, whose: Protected, several: bool = False) -> Adjacency:
        """Return the adjacency that protects `unit` of one row, or of all rows of one person or cluster.

        With `several` outcomes in a row, all of them.
        """
        if several and (unit, whose) == (Unit.OUTCOME, Protected.ROW):
            return cls.CHANGE_OUTCOMES_OF_ROW
        return _NEIGHBOURS[unit, whose]

    @property
    def whose(self) -> Protected:
        """Whose rows it protects."""
        found = (whose for (_, whose), adjacency in _NEIGHBOURS.items() if adjacency is self)
        return next(found, Protected.ROW)

    @property
    def sentence(self) -> str:
        """The relation in words."""
        return {
            Adjacency.CHANGE_OUTCOME: "two data sets are neighbours if they differ in the outcome of one row",
            Adjacency.CHANGE_OUTCOMES_OF_ROW: "two data sets are neighbours if they differ in the outcomes of one "
            "row, in any of its outcome columns",
            Adjacency.REPLACE_RECORD: "two data sets are neighbours if one row is replaced by any other",
            Adjacency.CHANGE_OUTCOMES_OF_PERSON: "two data sets are neighbours if they differ in the outcomes of one "
            "person, in any of their rows",
            Adjacency.REPLACE_PERSON: "two data sets are neighbours if one person with all their rows is replaced by "
            "any other",
            Adjacency.CHANGE_OUTCOMES_OF_CLUSTER: "two data sets are neighbours if they differ in the outcomes of one "
            "cluster, in any of its rows",
            Adjacency.CHANGE_PAIR: "two data sets are neighbours if they differ in the treatment and the outcome of "
            "one row",
            Adjacency.REPLACE_CLUSTER: "two data sets are neighbours if one cluster with all its rows is replaced by "
            "any other",
        }[self]


_NEIGHBOURS = {
    (Unit.OUTCOME, Protected.ROW): Adjacency.CHANGE_OUTCOME,
    (Unit.RECORD, Protected.ROW): Adjacency.REPLACE_RECORD,
    (Unit.OUTCOME, Protected.PERSON): Adjacency.CHANGE_OUTCOMES_OF_PERSON,
    (Unit.RECORD, Protected.PERSON): Adjacency.REPLACE_PERSON,
    (Unit.OUTCOME, Protected.CLUSTER): Adjacency.CHANGE_OUTCOMES_OF_CLUSTER,
    (Unit.TREATMENT_AND_OUTCOME, Protected.ROW): Adjacency.CHANGE_PAIR,
    (Unit.RECORD, Protected.CLUSTER): Adjacency.REPLACE_CLUSTER,
}


# Whose average effect is estimated.


class Estimand(StrEnum):
    """The population over which the effect is averaged."""

    ATE = "ATE"
    ATT = "ATT"
    ATC = "ATC"
    ATO = "ATO"

    @classmethod
    def parse(cls, value: object) -> Estimand:
        """Return the estimand named by `value`, or raise CV-P002."""
        if isinstance(value, str) and value.upper() in {member.value for member in cls}:
            return cls(value.upper())
        raise refusal("CV-P002", value=value)

    @property
    def sentence(self) -> str:
        """The estimand in words."""
        return self.sentence_of(None)

    def sentence_of(self, everyone: str | None) -> str:
        """Return the estimand in words; `everyone` names those in the study where they are not simply people."""
        return {
            Estimand.ATE: f"average effect of the treatment on {everyone or 'everyone in the study'}",
            Estimand.ATT: "average effect of the treatment on those who received it",
            Estimand.ATC: "average effect the treatment would have had on those who did not receive it",
            Estimand.ATO: "overlap-weighted average effect: people count by e(1-e), e being their "
            "chance of treatment",
        }[self]


SIMULATED = "SIMULATED, NOT A PRIVATE RELEASE"


class Proof(StrEnum):
    """How far the guarantee is proved."""

    FINITE_SAMPLE = "finite-sample"
    ASYMPTOTIC = "asymptotic"
    REFUTED = "refuted"
    NONE = "none"


# From here on a guarantee says what its epsilon means: odds multiplied by 22,026 and more.
LARGE_EPSILON = 10
# Factors beyond are not written out, and logarithms beyond are no doubles.
_READABLE, _LARGEST_LOG = 1e9, 700.0


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
    whose: Protected = Protected.ROW  # a row alone, or a person or a cluster with all their rows
    several: bool = (
        False  # whether a row has several private outcomes: before and after, or two parts of a ratio
    )

    @property
    def adjacency(self) -> Adjacency:
        """The neighbours that are compared."""
        return Adjacency.of(self.unit, self.whose, self.several)

    @property
    def odds_factor(self) -> float | None:
        """By how much the odds of anything about one person may change where epsilon is large; None where it is not."""
        return exp(min(float(self.epsilon), _LARGEST_LOG)) if self.epsilon > LARGE_EPSILON else None

    @property
    def large(self) -> str:
        """What a large epsilon means, in words; empty where it is not large."""
        factor = self.odds_factor
        if factor is None:
            return ""
        said = f"{factor:,.0f}" if factor < _READABLE else f"{factor:.0e}"
        return f"a LARGE epsilon: an attacker's odds about one person may change by a factor of up to {said}"

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
            f"{self.adjacency.sentence}" + (f"; {self.large}" if self.large else "")
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
        } | ({} if self.odds_factor is None else {"odds_factor": self.odds_factor})

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
            several=facts["adjacency"] == Adjacency.CHANGE_OUTCOMES_OF_ROW,
            whose=Adjacency(facts["adjacency"]).whose,
        )
