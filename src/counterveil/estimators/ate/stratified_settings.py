"""The settings of exact matching on strata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from counterveil.curator import SMOOTH_LAWS
from counterveil.errors import ParameterError, shown
from counterveil.privacy import Number, exact

PAIRINGS = ("all", "single")
SENSITIVITIES = ("bounded", "smooth", "global")
# Where no limit is given: strata with a quarter to three quarters treated count in full.
USUAL_LIMIT = Fraction(4)
_LEAST_LIMIT = Fraction(2)
_MOST_BINS = 64


@dataclass(frozen=True, slots=True)
class StratifiedSettings:
    """How strata are made, compared and protected; every number here is public.

    Args:
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

    strata: tuple[str, ...] | None = None
    cuts: Mapping[str, int] | None = None
    pairing: str = "all"
    sensitivity: str = "bounded"
    limit: Number | None = None
    noise: str = "lomax"
    smoothness: Number | None = None
    unmatched: bool = False
    order: str | None = None

    def __post_init__(self) -> None:
        if self.strata is not None:
            if not isinstance(self.strata, list | tuple) or not all(isinstance(n, str) for n in self.strata):
                raise _out_of_range("strata", "a list of names of covariates", self.strata)
            object.__setattr__(self, "strata", tuple(self.strata))
        if self.cuts is not None and not isinstance(self.cuts, Mapping):
            raise _out_of_range("cuts", "a mapping from names of covariates to numbers of bins", self.cuts)
        _one_of("pairing", self.pairing, PAIRINGS)
        _one_of("sensitivity", self.sensitivity, SENSITIVITIES)
        _one_of("noise", self.noise, SMOOTH_LAWS)
        if self.limit is not None and exact(self.limit, "limit") < _LEAST_LIMIT:
            raise _out_of_range("limit", "at least 2: one person and one match", self.limit)
        if self.smoothness is not None and exact(self.smoothness, "smoothness") <= 0:
            raise _out_of_range("smoothness", "above 0 and well below epsilon", self.smoothness)
        for name, bins in (self.cuts or {}).items():
            if not isinstance(bins, int) or not 2 <= bins <= _MOST_BINS:
                raise _out_of_range(f"cuts[{name!r}]", f"a number of bins from 2 to {_MOST_BINS}", bins)
        self._refuse_combinations()

    def _refuse_combinations(self) -> None:
        """Raise CV-P361 for words that contradict each other."""
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


def _one_of(name: str, value: object, words: tuple[str, ...]) -> None:
    if value not in words:
        raise ParameterError(
            "CV-P360",
            f"unknown word for {name}",
            expected=f"{name}={' or '.join(map(repr, words))}",
            got=f"{name}={shown(value)}",
            fix="choose one of these",
        )


def _out_of_range(name: str, expected: str, got: object) -> ParameterError:
    return ParameterError(
        "CV-P362",
        f"{name} is out of range",
        expected=expected,
        got=f"{name}={shown(got)}",
        fix="leave it out",
    )


def _contradiction(got: str, wanted: str) -> ParameterError:
    return ParameterError(
        "CV-P361",
        "these settings of stratified matching do not go together",
        expected=wanted,
        got=got,
        fix=f"pass {wanted}, or leave the other setting out",
    )
