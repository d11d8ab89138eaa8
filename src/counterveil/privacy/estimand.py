"""Whose average effect is estimated."""

from __future__ import annotations

from enum import StrEnum

from counterveil.errors import ParameterError, shown


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
        """The estimand in plain words."""
        return {
            Estimand.ATE: "average effect of the treatment on everyone in the study",
            Estimand.ATT: "average effect of the treatment on those who received it",
            Estimand.ATC: "average effect the treatment would have had on those who did not receive it",
        }[self]
