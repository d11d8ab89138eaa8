"""What may be chosen about private inverse probability weighting, and the plan that follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import inf

from counterveil.curator import Kind, Plan
from counterveil.curator.branches import in_branches
from counterveil.estimators.question import Question
from counterveil.estimators.setting_checks import between, one_of, out_of_range
from counterveil.privacy import Estimand

FORMS = ("hajek", "ht")
# Part of the budget for the arms' centres where the propensity is declared and everything is done on all rows.
CENTRES = Fraction(3, 20)
# Of a pure budget: the weighted sum, its squares, and the number treated where that has to be known.
_PURE_SHARES = {"effect": Fraction(17, 20), "squares": Fraction(3, 20)}
_PURE_SHARES_COUNTED = {"effect": Fraction(3, 4), "squares": Fraction(1, 8), "count": Fraction(1, 8)}

_refusal = partial(out_of_range, "CV-P420", "inverse probability weighting")


@dataclass(frozen=True, slots=True)
class IPWSettings:
    """Settings of `method="ipw"`; all of them are public.

    Attributes:
        form: "hajek" compares weighted means, "ht" (Horvitz-Thompson) weighted sums. Outcomes are centred
            at released means of the arms by the first and at the middle of their range by the second. None
            takes the first unless n and the budget are so small that those means would be noise.
        clip: scores below this are raised to it, and scores above one minus it lowered; None takes 0.2, or
            0.1 where n and the budget are large.
        penalty: of the propensity model; None chooses it from n, the covariates and the budget.
        fit_part: the part of the rows that the propensity model is fitted on; the others are weighted.
        shrink: pull the released weights of the model towards zero by what is known of their noise.
        lowest, highest: bounds that the published form assumes for the true propensity. It does not
            enforce them. Only `variant="paper"` reads them.
    """

    form: str | None = None
    clip: float | None = None
    penalty: float | None = None
    fit_part: float = 0.5
    shrink: bool = True
    lowest: float = 0.1
    highest: float = 0.9

    def __post_init__(self) -> None:
        if not one_of(self.form, None, *FORMS):
            raise _refusal("form", " or ".join(map(repr, FORMS)), self.form)
        if self.clip is not None and not between(self.clip, 0, 0.5):
            raise _refusal("clip", "a number above 0 and below 1/2, or None", self.clip)
        if self.penalty is not None and not between(self.penalty, 0, inf):
            raise _refusal("penalty", "a number above 0, or None", self.penalty)
        if not between(self.fit_part, 0, 1):
            raise _refusal("fit_part", "a number between 0 and 1", self.fit_part)
        if not isinstance(self.shrink, bool):
            raise _refusal("shrink", "True or False", self.shrink)
        if not between(self.lowest, 0, 1) or not between(self.highest, 0, 1):
            raise _refusal("lowest and highest", "numbers between 0 and 1", (self.lowest, self.highest))

    @property
    def centred(self) -> bool:
        """Whether outcomes are centred at released means."""
        return self.form == "hajek"

    def fit_rows(self, rows: int) -> int:
        """Return how many rows the propensity model is fitted on: at least one, and one is left."""
        return min(max(round(self.fit_part * rows), 1), rows - 1)


def ipw_plan(question: Question, settings: IPWSettings, declared: bool) -> Plan:
    """Return the plan: with a declared propensity one chain on all rows, else two chains on disjoint rows."""
    counted = question.estimand is not Estimand.ATE and not declared
    kinds: dict[str, Kind] = {}
    if question.law == "gaussian":
        shares, kinds = {"moments": Fraction(1)}, {"moments": Kind.VECTOR}
    else:
        shares = _PURE_SHARES_COUNTED if counted else _PURE_SHARES
    nuisances = {"nuisances": Kind.VECTOR}
    if not declared:
        return in_branches(
            question.budget, question.law, [({"nuisances": Fraction(1)}, nuisances), (shares, kinds)]
        )
    if not settings.centred:
        return Plan.split(question.budget, shares, question.law, kinds)
    spread = {name: share * (1 - CENTRES) for name, share in shares.items()}
    return Plan.split(question.budget, {"nuisances": CENTRES} | spread, question.law, nuisances | kinds)
