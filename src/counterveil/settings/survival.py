"""Settings of the question about times to an event."""

from __future__ import annotations

from dataclasses import dataclass

from counterveil.settings.ranges import NONE, Allowed, Settings, one_of, setting

_NAMES = Allowed(
    "a tuple of names of covariates",
    lambda names: isinstance(names, tuple) and bool(names) and all(isinstance(one, str) for one in names),
)


@dataclass(frozen=True, slots=True)
class Survival(Settings):
    """Settings of `survival`; all of them are public.

    Attributes:
        strata: covariates that make the strata of `method="stratified"`; None takes all of them.
        censoring: where in its time cell somebody is censored: in the "middle" (the actuarial convention: at risk for
            half of the cell, and curves fall evenly between the ends of cells), or at its "end" (as where times are
            recorded on the grid itself: at risk for all of it, and curves fall at the ends).
        release: "flat" releases counts, "sums" their running sums, whose noise grows less with the number of cells;
            "auto" takes the one of least expected noise at this number of cells.
    """

    strata: tuple[str, ...] | None = setting(None, _NAMES | NONE)
    censoring: str = setting("middle", one_of("middle", "end"))
    release: str = setting("auto", one_of("auto", "flat", "sums"))
