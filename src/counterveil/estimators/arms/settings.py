"""What may be chosen about adjusted means of several arms."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import inf

from counterveil.data import Study
from counterveil.estimators.ate.supposed_spread import supposed_spread
from counterveil.estimators.setting_checks import between, out_of_range, whole

_OR_NONE = ", or None"
_refusal = partial(out_of_range, "CV-P281", "several arms")


@dataclass(frozen=True, slots=True)
class ArmsSettings:
    """Settings of `arms(method="weighting")` and `arms(method="matching")`.

    Attributes:
        neighbours: matching: how many units of an arm stand in for one unit of another.
        limit: matching: how often one unit may be used; None takes the limit of least expected error.
        penalty: of the multinomial score; None is one over the number of rows.
        signal: what is supposed, as a part of the outcome's range, of the spread of the mean outcome over
            the covariates. It steers the trade-off of balance against noise and nothing else; None is
            `supposed_spread`, as for weighting.
        residual: the same for the spread of outcomes around that mean.
    """

    neighbours: int = 5
    limit: int | None = None
    penalty: float | None = None
    signal: float | None = None
    residual: float | None = None

    def __post_init__(self) -> None:
        for name, none in (("neighbours", False), ("limit", True)):
            value = getattr(self, name)
            if not (none and value is None) and not whole(value, 1):
                raise _refusal(name, "a whole number of at least 1" + _OR_NONE * none, value)
        for name in ("penalty", "signal", "residual"):
            value = getattr(self, name)
            if value is not None and not between(value, 0, inf):
                raise _refusal(name, "a finite number above 0" + _OR_NONE, value)

    def spreads(self, study: Study) -> tuple[float, float]:
        """Return what is supposed of the outcomes of a study: `signal` and `residual`, or what is usual."""
        usual = supposed_spread(study.outcome_range)
        return self.signal or usual, self.residual or usual
