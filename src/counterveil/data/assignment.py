"""How treatment was assigned: by a trial, by a known propensity, or by nobody who planned it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from counterveil.data.domains import plain_number
from counterveil.data.treatment import column_name
from counterveil.data.unknown_arguments import known_fields
from counterveil.errors import ParameterError, refusal
from counterveil.privacy import Number, exact


@known_fields
@dataclass(frozen=True, slots=True)
class Trial:
    """Treatment was assigned at random, with one probability for everybody.

    This declares how the data came about. `cv.settings.Trial` is something else: it sets options of the
    method `"trial"` of a question.

    Parameters
    ----------
    share : float, str or Fraction, optional
        Probability of treatment in the trial's published design, strictly between 0 and 1: 0.5, or "2/3"
        exactly. Never computed from the data. Two arms only.

    Attributes
    ----------
    share : int, float, str or None
        The share, as the shortest form that gives it back.

    Raises
    ------
    CounterveilError
        A share that is no probability (CV-S011).

    Examples
    --------
    >>> import counterveil as cv
    >>> cv.Trial(share="1/2")
    Trial(share=0.5)
    """

    share: Number | None = None

    def __post_init__(self) -> None:
        if self.share is None:
            return
        try:
            share = exact(self.share, "share")
        except ParameterError:
            share = None
        if share is None or not 0 < share < 1:
            raise refusal("CV-S011", share=self.share)
        object.__setattr__(self, "share", plain_number(share))

    @property
    def probability(self) -> Fraction | None:
        """The share as an exact number, None where none is declared."""
        return None if self.share is None else exact(self.share, "share")


@known_fields
@dataclass(frozen=True, slots=True)
class Propensity:
    """Everybody was treated with a probability that a column holds, known by design.

    Parameters
    ----------
    column : str
        A covariate of the study, declared as a `cv.Range` whose ends lie strictly between 0 and 1.

    Attributes
    ----------
    column : str
        The column.

    Raises
    ------
    CounterveilError
        No name of a column (CV-S004).

    Examples
    --------
    >>> import counterveil as cv
    >>> study = cv.Study(
    ...     "treated",
    ...     cv.Outcome("days", (0, 28)),
    ...     {"chance": cv.Range("0.1", "0.9")},
    ...     assignment=cv.Propensity("chance"),
    ... )
    >>> study.score
    'chance'
    """

    column: str

    def __post_init__(self) -> None:
        column_name(self.column, "propensity")


@known_fields
@dataclass(frozen=True, slots=True)
class Observational:
    """Treatment was not assigned at random: who was treated may depend on anything.

    A study that declares nothing is treated alike; this says that it was thought of.

    Examples
    --------
    >>> import counterveil as cv
    >>> study = cv.Study("treated", cv.Outcome("days", (0, 28)), assignment=cv.Observational())
    >>> study.randomised
    False
    """


Assignment: TypeAlias = Trial | Propensity | Observational


def checked_assignment(declared: object) -> Assignment | None:
    """Return how treatment was assigned, None where nothing is declared, or raise CV-S012."""
    if declared is None or isinstance(declared, Trial | Propensity | Observational):
        return declared
    raise refusal("CV-S012", assignment=declared)
