"""Which pairs of data sets a guarantee compares."""

from __future__ import annotations

from enum import StrEnum

from counterveil.privacy.unit import Unit


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
        """The relation in plain words."""
        if self is Adjacency.CHANGE_OUTCOME:
            return "two data sets are neighbours if they differ in the outcome of one person"
        return "two data sets are neighbours if one person's whole record is replaced by any other"
