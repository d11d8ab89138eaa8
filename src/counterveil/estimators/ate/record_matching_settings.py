"""What may be chosen about matching with private records."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import inf

from counterveil.curator import Kind, Plan
from counterveil.errors import ParameterError
from counterveil.estimators.question import Question
from counterveil.estimators.setting_checks import between, out_of_range, whole
from counterveil.privacy import Estimand, exact

_refusal = partial(out_of_range, "CV-P241", "record-level matching")


@dataclass(frozen=True, slots=True)
class RecordMatchingSettings:
    """Settings of `method="matching"` with `protects="record"`; the defaults are the published ones.

    Attributes:
        neighbours: how many units of the other arm stand in for one unit.
        penalty: of the propensity model; not published, 0.1 is customary.
        h: the error coefficient of the limit on reuse (PrivATE, equation 11).
        weights: part of the budget for the weights of the propensity model.
        scores: part of the budget for everyone's score.
        treatments: part of the budget for everyone's treatment, through randomized response.
        effect: part of the budget for the matched sum.
        debias: divide the estimate by the factor by which randomized response shrinks it. The standard
            error grows by the same factor, and there is still no valid interval for the effect.
    """

    neighbours: int = 5
    penalty: float = 0.1
    h: float = 0.001
    weights: float = 0.05
    scores: float = 0.05
    treatments: float = 0.7
    effect: float = 0.2
    debias: bool = False

    def __post_init__(self) -> None:
        if not whole(self.neighbours, 1):
            raise _refusal("neighbours", "a whole number of at least 1", self.neighbours)
        for name in ("penalty", "h", *_PARTS):
            value = getattr(self, name)
            if not between(value, 0, inf):
                raise _refusal(name, "a number above 0", value)
        if not isinstance(self.debias, bool):
            raise _refusal("debias", "True or False", self.debias)

    def shares(self) -> dict[str, Fraction]:
        """Return the parts of the budget; only their proportions count."""
        return {name: exact(getattr(self, name), name) for name in _PARTS}


_PARTS = ("weights", "scores", "treatments", "effect")


def record_matching_plan(
    question: Question, settings: RecordMatchingSettings, weights: Kind, law: str
) -> Plan:
    """Return the plan of the four releases, or refuse an estimand that randomized treatments mix up."""
    if question.estimand is not Estimand.ATE:
        raise ParameterError(
            "CV-P242",
            "matching with private records estimates no such effect",
            expected="estimand='ATE'",
            got=f"estimand={question.estimand.value!r}",
            fix="leave estimand out: after randomized response both arms hold treated and untreated people, "
            "so effects on the treated and on the others cannot be told apart",
        )
    kinds = {"weights": weights, "scores": Kind.ROWS, "treatments": Kind.RESPONSE}
    return Plan.split(question.budget, settings.shares(), law, kinds)
