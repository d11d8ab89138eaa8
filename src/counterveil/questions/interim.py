"""Looks at an effect while data come in, with intervals that hold together wherever the study stops.

`interim.planned(...)` comes before the first row, `interim.look(...)` is each look, and
`interim.sequence(...)` plans looks without a last one.

    look k:  an interval of level 1 - alpha_k at the budget epsilon_k,
             sum_k alpha_k <= alpha,  sum_k epsilon_k <= epsilon

In: the planned numbers of rows at the looks, epsilon, and the level 1 - alpha. Out: at every look the effect
in units of the outcome. The chance that any interval misses is at most the sum of the chances that each one
does (Bonferroni), whatever the dependence between looks and wherever the study stops. alpha is divided by the
functions of O'Brien and Fleming or of Pocock, in the form of Lan and DeMets (1983), or as alpha / (k (k +
1)), which adds up to alpha over all k. Budgets of looks add up under adaptive choices:
`accounting/filters.proof.md`; a policy of the ledger keeps the plan.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil, e, log, sqrt
from pathlib import Path
from typing import cast

from scipy.special import ndtr, ndtri

from counterveil.accounting import Ledger, Look, Looks
from counterveil.accounting.access_policy import MOST_LOOKS
from counterveil.data import Study, check_study
from counterveil.errors import CounterveilError, refusal, shown
from counterveil.privacy import Budget, Number, exact
from counterveil.privacy.caveats import OneLook
from counterveil.questions.asking import asks
from counterveil.questions.ate import AteArguments, answer
from counterveil.questions.choices import AteMethod, EstimandName, Mechanism, Protects, Spending
from counterveil.report.text import percent
from counterveil.results.effect import check_level
from counterveil.results.result import Result
from counterveil.session import BaseSession, BitSource
from counterveil.settings.methods import Settings


def _late(share: float, alpha: float) -> float:
    """Return what is spent by a share of the information in the manner of O'Brien and Fleming: little early on."""
    return float(2 * ndtr(ndtri(alpha / 2) / sqrt(share)))


def _even(share: float, alpha: float) -> float:
    """Return the same in the manner of Pocock: about equally at each look."""
    return alpha * log(1 + (e - 1) * share)


# The k-th look has the part 1 / (k (k + 1)) of error and budget, which add up to one over all k: a plan may go on.
ALWAYS_VALID = "always_valid"
SPENDING: dict[str, Callable[[float, float], float]] = {"obrien_fleming": _late, "pocock": _even}
# No interval is asked for beyond the level that intervals are computed to.
LEAST_ALPHA = Fraction(1, 10**6)


def alphas(rows: Sequence[int], alpha: Fraction, spending: str) -> tuple[Fraction, ...]:
    """Return the chance of a miss that each look spends, exact numbers of sum alpha, or less without a last look."""
    if spending == ALWAYS_VALID:
        return unending(alpha, len(rows))
    spent = [Fraction(0)]
    for number in rows[:-1]:
        by_now = Fraction(round(SPENDING[spending](number / rows[-1], float(alpha)) * 10**9), 10**9)
        spent.append(max(by_now, spent[-1] + LEAST_ALPHA))
    spent.append(alpha)
    return tuple(later - earlier for earlier, later in itertools.pairwise(spent))


# Nobody has more rows than this: looks without end are not written down beyond it.
_MOST_ROWS = 10**12


def unending(whole: Fraction, count: int) -> tuple[Fraction, ...]:
    """Return the first parts of a whole that is divided among looks without end."""
    return tuple(whole / (k * (k + 1)) for k in range(1, count + 1))


__all__ = ["look", "planned", "sequence"]


def planned(
    outcome: str,
    rows: Sequence[int],
    *,
    epsilon: Number | Sequence[Number],
    delta: Number = 0,
    level: float = 0.95,
    spending: Spending = "obrien_fleming",
) -> Looks:
    """Plan interim analyses ("looks") for the access policy of an account.

    The plan is part of the policy, ``cv.drafting.AccessPolicy(..., looks=plan)``, and cannot be changed after
    the first row. It divides the budget and the chance of a miss among the looks, so that all intervals cover
    together.

    Parameters
    ----------
    outcome : str
        The column that is looked at.
    rows : sequence of int
        The planned number of rows, or people, at each analysis, rising.
    epsilon : number, str, or a sequence of them
        Privacy loss of all analyses together, divided equally; or one for each. Read exactly.
    delta : number, default 0
        Delta of all analyses together, divided equally.
    level : float, default 0.95
        The chance that all intervals cover.
    spending : {"obrien_fleming", "pocock", "always_valid"}, default "obrien_fleming"
        How the chance of a miss is divided: little early on, about equally, or 1 / (k (k + 1)) of it and of
        the budget at the k-th look, however many follow.

    Returns
    -------
    Looks
        The looks, each with its rows, budget and boundary.

    Raises
    ------
    CounterveilError
        CV-P730 for a plan that is none; budget (CV-B, CV-P003).

    See Also
    --------
    look : Estimate the effect at a planned look.
    sequence : Plan looks without a last one.

    Notes
    -----
    With t the share of the rows, the chance of a miss spent by t is 2 Phi(Phi^{-1}(alpha / 2) / sqrt(t))
    for "obrien_fleming" and alpha log(1 + (e - 1) t) for "pocock" [1]_. Each interval has the level of what its
    look spends, so that the sum of all misses is at most alpha.

    References
    ----------
    .. [1] Lan, K. K. G. and DeMets, D. L. (1983). Discrete sequential boundaries for
       clinical trials. Biometrika 70, 659-663.

    Examples
    --------
    >>> import counterveil as cv
    >>> plan = cv.interim.planned("recovered", rows=[300, 600, 1000], epsilon=3)
    >>> len(plan.planned), float(plan.planned[0].budget.epsilon)
    (3, 1.0)
    """
    found = list(rows) if isinstance(rows, Sequence) else []
    if not found or any(type(number) is not int for number in found) or sorted({*found, 0}) != [0, *found]:
        raise _invalid("rows=: rising whole numbers above 0", shown(rows))
    if spending not in (*SPENDING, ALWAYS_VALID):
        raise _invalid(f"spending= one of {', '.join(map(repr, (*SPENDING, ALWAYS_VALID)))}", shown(spending))
    alpha = 1 - exact(str(check_level(level)), "level")
    if alpha < 2 * len(found) * LEAST_ALPHA:
        raise _invalid(f"a level below {float(1 - 2 * len(found) * LEAST_ALPHA)}", shown(level))
    each = (
        [epsilon] * len(found) if isinstance(epsilon, str) or not isinstance(epsilon, Sequence) else epsilon
    )
    if len(each) != len(found):
        raise _invalid(f"one epsilon, or {len(found)}", shown(epsilon))
    parts = 1 if each is epsilon else len(found)
    shares = [Fraction(1, parts)] * len(found)
    deltas = [exact(delta, "delta") / len(found)] * len(found)
    if spending == ALWAYS_VALID and each is not epsilon:
        shares, deltas = (
            list(unending(Fraction(1), len(found))),
            list(unending(exact(delta, "delta"), len(found))),
        )
    parts_of = zip(each, shares, deltas, strict=True)
    budgets = [Budget(exact(one, "epsilon") * share, own) for one, share, own in parts_of]
    Budget(1, delta).check_rows(found[-1])
    spent = alphas(found, alpha, spending)
    return Looks(outcome, tuple(Look(*numbers) for numbers in zip(found, budgets, spent, strict=True)))


def sequence(
    outcome: str,
    first: int,
    *,
    epsilon: Number,
    delta: Number = 0,
    level: float = 0.95,
    growth: float = 2.0,
) -> Looks:
    """Plan looks that need not end: a confidence sequence, whose intervals all cover together.

    Parameters
    ----------
    outcome : str
        The column that is looked at.
    first : int
        The number of rows, or people, at the first look.
    epsilon : number or str
        Privacy loss of all analyses together, read exactly; the k-th has the part 1 / (k (k + 1)).
    delta : number, default 0
        Delta of all analyses together, divided in the same way.
    level : float, default 0.95
        The chance that all intervals cover, however many there are.
    growth : float, default 2.0
        Every analysis has so many times the rows of the one before, above 1 and up to 1,000.

    Returns
    -------
    Looks
        The looks that can be written down, each with its rows, budget and boundary.

    Raises
    ------
    CounterveilError
        CV-P730 for a plan that is none; budget (CV-B, CV-P003).

    See Also
    --------
    planned : Plan looks with a last one.

    Examples
    --------
    >>> import counterveil as cv
    >>> plan = cv.interim.sequence("recovered", first=500, epsilon=4)
    >>> [look.rows for look in plan.planned[:3]]
    [500, 1000, 2000]
    """
    if type(first) is not int or first < 1 or not isinstance(growth, int | float) or not 1 < growth <= 1000:
        raise _invalid("first=: a whole number above 0, growth=: above 1", shown((first, growth)))
    rows, small = [first], exact(delta, "delta")
    # A delta is below one over the number of people.
    most = min(_MOST_ROWS, int(1 / small) - 1) if small > 0 else _MOST_ROWS
    while len(rows) < MOST_LOOKS and rows[-1] * growth + 1 <= most:
        rows.append(max(ceil(rows[-1] * growth), rows[-1] + 1))
    return planned(outcome, rows, epsilon=epsilon, delta=delta, level=level, spending=ALWAYS_VALID)


@asks
def look(
    data: object,
    study: object,
    declared: object = None,  # noqa: ARG001 (read by `asks`)
    *,
    number: int,
    protects: Protects,
    ledger: str | Path | Ledger,
    method: AteMethod = "auto",
    estimand: EstimandName | None = None,
    mechanism: Mechanism | None = None,
    settings: Settings | None = None,
    dataset: str | None = None,
    noise: BitSource | None = None,
) -> Result:
    """Estimate the effect at a planned interim analysis; all intervals cover together.

    The access policy of the account says what the look spends. A look that was answered before is answered
    from the ledger, at no cost.

    Parameters
    ----------
    data : frame, mapping, path or relation
        The rows of everyone who is there by then: a pandas, polars or pyarrow data frame, a mapping of names
        to arrays, the path of a CSV or Parquet file, a DuckDB relation or a Spark data frame. A formula such
        as ``"died ~ rhc | age + sex"`` may stand here; rows and declarations follow it.
    study : Study
        Roles, public ranges and categories of the columns, the same at every analysis. After a formula: the
        rows.
    declared : mapping, Study or path, optional
        After a formula only: what declares its columns, as a mapping of names to ranges and labels
        (``{"age": (18, 90)}``), a codebook or study file, or a `Study`.
    number : int
        Which of the planned analyses, from 1 on.
    protects : {"outcome", "treatment and outcome", "record"}
        What is private. "outcome": outcomes alone; covariates and treatments are public. "treatment and
        outcome": treatments and outcomes; covariates are public. "record": everything about a person.
    ledger : path, URL or Ledger
        The ledger of the account whose access policy plans the looks.
    method : str, default "auto"
        Estimator. "auto" chooses from public numbers alone and names its choice in the result. With outcomes
        private: "difference_in_means" (trials), "weighting", "matching" and "stratified". With records
        private: "trial", "doubly_robust", "stratified" and "sample_and_aggregate". With treatments and
        outcomes private: "trial" and "doubly_robust".
    estimand : {"ATE", "ATT", "ATC", "ATO"}, optional
        Whose average effect: everyone's, that of the treated, of the untreated, or of the overlap-weighted
        population. By default "ATE"; "ATT" where a study compares changes and is not randomised.
    mechanism : {"staircase", "laplace", "gaussian"}, optional
        Noise distribution; "gaussian" needs a plan with a positive delta. By default the one of least
        variance.
    settings : settings of the method, optional
        As ``cv.settings.Matching(neighbours=5)``.
    dataset : str, optional
        Account in the ledger; needed if it has more than one.
    noise : SeededNoise, optional
        ``cv.SeededNoise(seed)`` for tests and experiments: the result is marked as simulated and protects
        nobody. By default the operating system's random bits.

    Returns
    -------
    Result
        The effect with the interval of this look; `details` has its number and boundary.

    Raises
    ------
    CounterveilError
        CV-P730 without a plan that has this look. Otherwise before anything is spent: arguments (CV-P), study
        (CV-S), data (CV-D), ledger (CV-L) or budget (CV-B).

    See Also
    --------
    planned : Plan looks.
    """
    check_study(study)
    known = cast("Study", study)
    with BaseSession(data, known, ledger=ledger, dataset=dataset, noise=noise, attach=False) as session:
        return answer_look(session, number, protects, method, estimand, mechanism, settings)


def answer_look(
    session: BaseSession,
    number: int,
    protects: Protects,
    method: AteMethod,
    estimand: EstimandName | None,
    mechanism: Mechanism | None,
    settings: Settings | None,
) -> Result:
    """Return the effect at a planned look of an open session."""
    access_policy = session.account().access_policy
    looks = None if access_policy is None else access_policy.looks
    if looks is None or type(number) is not int or not 1 <= number <= len(looks.planned):
        raise (
            no_plan() if looks is None else _invalid(f"number= from 1 to {len(looks.planned)}", shown(number))
        )
    this = looks.planned[number - 1]
    asked = AteArguments(
        protects=protects,
        epsilon=this.budget.epsilon,
        delta=this.budget.delta,
        method=method,
        estimand=estimand,
        level=float(1 - this.alpha),
        mechanism=mechanism,
        settings=settings,
        request_id=looks.request_id(number),
    )
    question = replace(asked.about(session.study), look=number)
    found = answer(session, question)
    said: dict[str, float | str] = {"look": f"{number} of {len(looks.planned)}"}
    said |= {"look_boundary": float(this.alpha), "looks_left": len(looks.planned) - number}
    said["level_of_all_looks"] = looks.level
    words = f"{found.method}; look {said['look']}, all intervals together {percent(looks.level)}"
    caveats = (*found.not_covered, OneLook(float(this.alpha)))
    return replace(found, method=words, not_covered=caveats, details=found.details | said)


def no_plan() -> CounterveilError:
    """Return CV-P730 for a look without a ledger whose access policy plans it."""
    return _invalid("a ledger with an account whose access policy plans looks", "no plan")


def _invalid(expected: str, got: str) -> CounterveilError:
    return refusal("CV-P730", expected=expected, got=got)
