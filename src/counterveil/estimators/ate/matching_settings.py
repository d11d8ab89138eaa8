"""What may be chosen about matching, and how the limit on reuse is found."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from counterveil.errors import ParameterError, shown
from counterveil.estimators.setting_checks import between, one_of, whole

AUTO, BEST, ADAPTIVE = "auto", "best", "adaptive"
BY_ARM, BY_ROW = "arm", "row"


@dataclass(frozen=True, slots=True)
class MatchingSettings:
    """Settings of `method="matching"`.

    Attributes:
        neighbours: how many units of the other arm stand in for one unit.
        limit: how often one unit may be used. "best" takes the limit with the least expected error at the
            budget asked for; "adaptive" the published rule (PrivATE, equations 9 and 10), raised until
            everyone can be matched; a whole number k stands for k times `neighbours` uses in the smaller
            arm and in proportion in the other; None sets no limit. "auto" is "best", and "adaptive" in the
            published form.
        penalty: of the propensity model; None is one over the number of rows.
        c: the error coefficient of equation 9.
        spread: what the variance is estimated from: "arm", the spread of outcomes around lines in the
            covariates, one for each of up to four parts of an arm by the size of coefficients, or "row", pairs
            of rows next to each other in the score, which allows for spreads that differ within these and
            makes intervals longer. "auto" is "arm", and "row" where rows times squared columns of covariates
            exceed eight million.
    """

    neighbours: int = 5
    limit: int | str | None = AUTO
    penalty: float | None = None
    c: float = 0.01
    spread: str = AUTO

    def __post_init__(self) -> None:
        if not whole(self.neighbours, 1):
            raise _refusal("neighbours", "a whole number of at least 1", self.neighbours)
        if not one_of(self.limit, AUTO, BEST, ADAPTIVE, None) and not whole(self.limit, 1):
            allowed = f"{AUTO!r}, {BEST!r}, {ADAPTIVE!r}, a whole number of at least 1, or None for no limit"
            raise _refusal("limit", allowed, self.limit)
        if self.penalty is not None and not between(self.penalty, 0, inf):
            raise _refusal("penalty", "a number above 0, or None", self.penalty)
        if not between(self.c, 0, inf):
            raise _refusal("c", "a number above 0", self.c)
        if not one_of(self.spread, AUTO, BY_ARM, BY_ROW):
            raise _refusal("spread", f"{AUTO!r}, {BY_ARM!r} or {BY_ROW!r}", self.spread)


def _refusal(name: str, expected: str, value: object) -> ParameterError:
    return ParameterError(
        "CV-P200",
        f"the matching setting {name} is out of range",
        expected=f"{name}: {expected}",
        got=f"{name}={shown(value)}",
        fix="leave the setting out, or pass a value inside the range",
    )
