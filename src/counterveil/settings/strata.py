"""Settings of comparisons within strata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from counterveil.errors import ParameterError
from counterveil.privacy import Number, exact
from counterveil.settings.ranges import (
    NONE,
    Allowed,
    Settings,
    exactly,
    is_whole,
    one_of,
    out_of_range,
    setting,
)

# Noise that follows a smooth bound: the first two are pure, the last needs a delta.
SMOOTH_MECHANISMS = ("lomax", "student", "laplace")
# Where no limit is given: strata with a quarter to three quarters treated count in full.
USUAL_LIMIT = Fraction(4)
_LEAST_LIMIT = Fraction(2)
_MOST_BINS = 64


def _are_names(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(name, str) for name in value)


@dataclass(frozen=True, slots=True)
class Stratified(Settings):
    """Settings of `method="stratified"`: how strata are made, compared and protected; every number is public.

    Attributes:
        strata: the covariates that make strata; None takes all of them.
        cuts: a number of bins for numeric covariates without cut points, bought as private quantiles.
        pairing: "all" compares the arms' means in every stratum; "single" matches one to one, in row order.
        sensitivity: "bounded" limits how much one person's outcome can count; "smooth" follows the data
            with a smooth bound; "global" assumes the worst. Where only outcomes are private the last two
            mean the same: no limit, noise for the largest weight there is.
        limit: for "bounded", the most that one person's outcome may count, in persons; None means 4.
        noise: for "smooth": "lomax", "student" (both pure) or "laplace" (needs a delta).
        smoothness: for "smooth": the rate of the bound; None chooses from public numbers.
        unmatched: for "smooth": also release the share of people in strata that lack an arm, and give the
            effect for the others.
        order: the column that puts the rows of a database in their public order, for "single".
    """

    strata: tuple[str, ...] | None = setting(
        None, Allowed("a list of names of covariates", _are_names) | NONE
    )
    cuts: Mapping[str, int] | None = setting(
        None,
        Allowed(
            "a mapping from names of covariates to numbers of bins", lambda cuts: isinstance(cuts, Mapping)
        )
        | NONE,
    )
    pairing: str = setting("all", one_of("all", "single"))
    sensitivity: str = setting("bounded", one_of("bounded", "smooth", "global"))
    limit: Number | None = setting(
        None, exactly("at least 2 (one person and one match)", lambda limit: limit >= _LEAST_LIMIT) | NONE
    )
    noise: str = setting("lomax", one_of(*SMOOTH_MECHANISMS))
    smoothness: Number | None = setting(
        None, exactly("a number above 0 and well below epsilon", lambda rate: rate > 0) | NONE
    )
    unmatched: bool = False
    order: str | None = None

    def _check_together(self) -> None:
        """Refuse numbers of bins out of range, and words that contradict each other; None is returned."""
        if self.strata is not None:
            self._put("strata", tuple(self.strata))
        for name, bins in (self.cuts or {}).items():
            if not is_whole(bins, 2, _MOST_BINS):
                words = f"a number of bins from 2 to {_MOST_BINS}"
                raise out_of_range(type(self).__name__, f"cuts[{name!r}]", words, bins)
        if self.pairing == "single" and self.sensitivity == "bounded":
            raise _contradiction('pairing="single" has weights that follow the data', 'sensitivity="smooth"')
        if self.limit is not None and self.sensitivity != "bounded":
            raise _contradiction("a limit bounds the weights", 'sensitivity="bounded"')
        if self.unmatched and self.sensitivity != "smooth":
            raise _contradiction(
                "with bounded weights the share of lost weight is always released", 'sensitivity="smooth"'
            )

    def exact_limit(self, default: Fraction | None) -> Fraction | None:
        """Return the limit as a rational."""
        return default if self.limit is None else exact(self.limit, "limit")


def _contradiction(got: str, wanted: str) -> ParameterError:
    return ParameterError(
        "CV-P361",
        "these settings of stratified matching are incompatible",
        expected=wanted,
        got=got,
        fix=f"pass {wanted}, or leave the other setting out",
    )
