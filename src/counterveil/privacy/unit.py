"""Whose secret is kept: only a person's outcome, or everything about the person."""

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
            fix="choose one of the two; there is no default because it decides what is promised",
        )
