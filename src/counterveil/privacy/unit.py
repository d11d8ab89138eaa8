"""What is protected: only a person's outcome, or everything about the person."""

from __future__ import annotations

from enum import StrEnum

from counterveil.errors import ParameterError, shown


class Unit(StrEnum):
    """The unit of protection, as given by `protects=`."""

    OUTCOME = "outcome"
    RECORD = "record"

    @classmethod
    def parse(cls, value: object) -> Unit:
        """Return the unit named by `value`, or raise CV-P001."""
        if isinstance(value, str) and value in {member.value for member in cls}:
            return cls(value)
        raise ParameterError(
            "CV-P001",
            "unknown unit of protection",
            expected='protects="outcome" (outcomes are private) or "record" (everything about a person is)',
            got=f"protects={shown(value)}",
            fix="choose one of the two; there is no default because it determines the guarantee",
        )


# Which pairs of data sets a guarantee compares.


class Adjacency(StrEnum):
    """Neighbouring data sets; the number of rows and their order never change."""

    CHANGE_OUTCOME = "change-one-outcome"
    REPLACE_RECORD = "replace-one-record"

    @classmethod
    def of(cls, unit: Unit) -> Adjacency:
        """Return the adjacency that protects `unit`."""
        return cls.CHANGE_OUTCOME if unit is Unit.OUTCOME else cls.REPLACE_RECORD

    @property
    def sentence(self) -> str:
        """The relation in words."""
        if self is Adjacency.CHANGE_OUTCOME:
            return "two data sets are neighbours if they differ in the outcome of one person"
        return "two data sets are neighbours if one person's whole record is replaced by any other"


# Whose average effect is estimated.


class Estimand(StrEnum):
    """The population over which the effect is averaged."""

    ATE = "ATE"
    ATT = "ATT"
    ATC = "ATC"

    @classmethod
    def parse(cls, value: object) -> Estimand:
        """Return the estimand named by `value`, or raise CV-P002."""
        if isinstance(value, str) and value in {member.value for member in cls}:
            return cls(value)
        raise ParameterError(
            "CV-P002",
            "unknown estimand",
            expected='estimand="ATE" (everyone), "ATT" (the treated) or "ATC" (the untreated)',
            got=f"estimand={shown(value)}",
            fix="choose one of the three",
        )

    @property
    def sentence(self) -> str:
        """The estimand in words."""
        return {
            Estimand.ATE: "average effect of the treatment on everyone in the study",
            Estimand.ATT: "average effect of the treatment on those who received it",
            Estimand.ATC: "average effect the treatment would have had on those who did not receive it",
        }[self]
