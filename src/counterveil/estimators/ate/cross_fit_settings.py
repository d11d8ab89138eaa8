"""What may be chosen about the cross-fitted effect, and the plan that follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import inf, sqrt

import numpy as np

from counterveil.curator import Kind, Plan
from counterveil.curator.parallel import ParallelPlan, in_parallel
from counterveil.estimators.ate.doubly_robust_plan import MOST_NOISE, Design
from counterveil.estimators.question import Question
from counterveil.estimators.setting_checks import between, number, one_of, out_of_range
from counterveil.privacy import Estimand

# Squared lengths of treatment and outcome beside a row's in the second moments.
TREATMENT, OUTCOME = 0.25, 1.0
# Shares of the budget by release, chosen on other seeds than those reported; each record pays all of them once.
_FIRST = {"gaussian": (Fraction(6, 100), Fraction(2, 100)), "pure": (Fraction(12, 100), Fraction(5, 100))}
_REST = {"weights": Fraction(25, 100), "gram": Fraction(65, 100), "score": Fraction(10, 100)}
# Of the score's share where noise is pure: the sum, its squares, and the number treated where it has to be known.
_PURE = {"effect": Fraction(17, 20), "squares": Fraction(3, 20)}
_PURE_COUNTED = {"effect": Fraction(3, 4), "squares": Fraction(1, 8), "count": Fraction(1, 8)}
# The penalty at which the noise of a logit has about this standard deviation.
_LOGIT_NOISE = 0.5
_LEAST_PENALTY, _MOST_PENALTY = 1e-5, 0.5
# Squared lengths of standardised rows, as a multiple of their number of features.
_LENGTH = 1.5

_refusal = partial(out_of_range, "CV-P430", "cross_fit")


@dataclass(frozen=True, slots=True)
class CrossFitSettings:
    """Settings of `method="cross_fit"`; all of them are public.

    Attributes:
        clip: fitted propensities are kept this far from 0 and 1.
        penalty: of the propensity model; None chooses it from n, the covariates and the budget.
        reach: scores are clipped at this many of their predicted standard deviations; None chooses from n and
            the budget. "bound" clips where no score can be, about width/clip, or the width over the smaller arm's
            share where that is declared: nothing is cut off, for more noise.
        shrink: pull the released slopes of the propensity model towards zero by what is known of their noise.
    """

    clip: float = 0.1
    penalty: float | None = None
    reach: float | str | None = None
    shrink: bool = True

    def __post_init__(self) -> None:
        if not between(self.clip, 0, 0.5):
            raise _refusal("clip", "a number above 0 and below 1/2", self.clip)
        if self.penalty is not None and not between(self.penalty, 0, inf):
            raise _refusal("penalty", "a number above 0, or None", self.penalty)
        if not one_of(self.reach, None, "bound") and not number(self.reach, 1):
            raise _refusal("reach", "a number of at least 1, 'bound' or None", self.reach)
        if not isinstance(self.shrink, bool):
            raise _refusal("shrink", "True or False", self.shrink)


def cross_fit_plan(question: Question, declared: bool) -> ParallelPlan:
    """Return the plan: what is released of one half costs nothing beside what is released of the other.

    Where the propensity is `declared`, no model of it is fitted.
    """
    counted = question.estimand is not Estimand.ATE and not declared
    shares = _shares(question.law, declared, counted)
    kinds = {"centre": Kind.VECTOR, "norms": Kind.VECTOR, "weights": Kind.VECTOR, "gram": Kind.VECTOR}
    if question.law == "gaussian":
        kinds["moments"] = Kind.VECTOR
    else:
        kinds["norms"] = Kind.CELLS
    groups = {name: [name] for name in shares}
    groups |= {name: [f"{name} {half}" for half in (1, 2)] for name in ("weights", "gram") if name in shares}
    return in_parallel(Plan.split(question.budget, shares, question.law, kinds), groups)


def _shares(law: str, declared: bool, counted: bool) -> dict[str, Fraction]:
    centre, norms = _FIRST["gaussian" if law == "gaussian" else "pure"]
    left = 1 - centre - norms
    rest = {name: share for name, share in _REST.items() if name != "weights" or not declared}
    total = sum(rest.values(), Fraction(0))
    shares = {"centre": centre, "norms": norms}
    shares |= {name: left * share / total for name, share in rest.items()}
    score = shares.pop("score")
    own = {"moments": Fraction(1)} if law == "gaussian" else _PURE_COUNTED if counted else _PURE
    return shares | {name: score * part for name, part in own.items()}


def noise_of_gram(design: Design, plan: Plan) -> float:
    """Return the operator norm of the noise of a half's second moments; `design` has the rows of a half."""
    reach = (1 + _LENGTH * design.features) * (1 + TREATMENT + OUTCOME)
    share = plan.parts["gram"]
    return 2 * sqrt(design.features + 1) * float(design.gram_noise(share, reach))


def affordable(design: Design, plan: Plan) -> bool:
    """Whether the public numbers afford models of both halves."""
    return noise_of_gram(design, plan) <= MOST_NOISE["pure" if design.pure else "gaussian"]


def outcome_room(design: Design, plan: Plan) -> float:
    """Return by what the bound of outcomes in the second moments, 2.2 of their deviations, is multiplied.

    Clipping so near takes a hundredth off the coefficients, which nothing puts back; where noise is small, it shows.
    """
    noise = noise_of_gram(design, plan)
    return 1.0 if noise >= 0.3 else 1.4 if noise >= 0.05 else 1.8


def chosen_penalty(design: Design, plan: Plan) -> float:
    """Return the penalty that balances the noise of the weights against what it takes off the model.

    Rows are no longer than sqrt(2), and the weights move by 2 sqrt(2)/(rows penalty): a logit by 4/(rows penalty).
    """
    sd = float(design.sd(plan.parts["weights"], design.features + 1, 4.0))
    return float(np.clip(sd / _LOGIT_NOISE, _LEAST_PENALTY, _MOST_PENALTY))
