"""What results must share before they may be averaged."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from counterveil.errors import refusal
from counterveil.privacy import Budget, Guarantee, Proof, Protected, show
from counterveil.privacy.caveats import OPENING, AtSites, Fact, SitesLeftOut
from counterveil.results.measure_words import DIFFERENCE
from counterveil.results.measures import MeasureResult
from counterveil.results.result import Result

Named = list[tuple[str, Result]]
One = TypeVar("One")


def check_agreement(sites: Named) -> None:
    """Raise unless the results answer one question about different people."""
    if len(sites) < 2:
        raise refusal("CV-P500", sites=len(sites), sites_2="" if len(sites) == 1 else "s")
    _check_same(sites)
    _check_distinct(sites)


def _question(result: Result) -> dict[str, str]:
    return {
        "unit of protection": result.guarantee.unit.value,
        "measure": result.measure if isinstance(result, MeasureResult) else DIFFERENCE,
        "estimand": result.estimand.value,
        "treatment": result.treatment,
        "outcome": result.outcome,
        "population": "everyone" if result.population is None else "trimmed by propensity scores",
    }


def _check_same(sites: Named) -> None:
    first_name, first = sites[0]
    wanted = _question(first)
    for name, result in sites[1:]:
        for word, value in _question(result).items():
            if value != wanted[word]:
                raise refusal(
                    "CV-P503", word=word, first_name=first_name, wanted=wanted[word], name=name, value=value
                )


def _check_distinct(sites: Named) -> None:
    seen: dict[tuple[object, ...], str] = {}
    for name, result in sites:
        # Two draws of noise do not agree in every number; the same release sent twice does.
        key = (*released_numbers(result), result.spent)
        if key in seen:
            raise refusal("CV-P504", seen=seen[key], name=name)
        seen[key] = name


def released_numbers(result: Result) -> tuple[float, ...]:
    """Return numbers as the gate released them."""
    if isinstance(result, MeasureResult) and result.means is not None:
        # Ratios of rare outcomes are all zero where noise put the mean of the treated below the range.
        return result.means.values
    known = result.uncertainty
    return result.estimate, known.variance, known.variance_cap


# The guarantee of a pooled result: everyone keeps that of their own site.


PAGE = "inference/pooling.proof.md"
_DISJOINT = (
    "which site each person is in, and that nobody is in two: the sites must ensure this, it is not checked"
)
# From the best to the worst: a pooled result is as well proved as its worst part.
_ORDER = (Proof.FINITE_SAMPLE, Proof.ASYMPTOTIC, Proof.REFUTED, Proof.NONE)


def pooled_guarantee(sites: Named) -> Guarantee:
    """Return what is guaranteed to everyone in any of the sites: the weakest of the sites' guarantees."""
    guarantees = [result.guarantee for _, result in sites]
    return Guarantee(
        epsilon=max(guarantee.epsilon for guarantee in guarantees),
        delta=max(guarantee.delta for guarantee in guarantees),
        unit=guarantees[0].unit,
        proof=max((guarantee.proof for guarantee in guarantees), key=_ORDER.index),
        public=_union([(_DISJOINT,), *(guarantee.public for guarantee in guarantees)]),
        pages=_union([(PAGE,), *(guarantee.pages for guarantee in guarantees)]),
        remarks=(_each(sites), *_marked(sites), *_own_remarks(sites)),
        whose=min((guarantee.whose for guarantee in guarantees), key=list(Protected).index),
    )


def pooled_spending(sites: Named) -> Budget:
    """Return the most that anyone's data have spent: sites hold different people, so nothing adds up."""
    return Budget(
        max(result.spent.epsilon for _, result in sites), max(result.spent.delta for _, result in sites)
    )


def _each(sites: Named) -> str:
    said = [
        f"{name} {show(result.guarantee.epsilon)}"
        + (f" (delta {show(result.guarantee.delta)})" if result.guarantee.delta else "")
        for name, result in sites
    ]
    return (
        f"each person has the epsilon of their own site: {', '.join(said)}; the guarantee names the largest"
    )


def _marked(sites: Named) -> list[str]:
    """Return a remark on every site whose guarantee is less than proved."""
    return [
        f"{name}: {result.guarantee.warning}"
        for name, result in sites
        if result.guarantee.warning is not None
    ]


def _own_remarks(sites: Named) -> list[str]:
    return [f"{name}: {remark}" for name, result in sites for remark in result.guarantee.remarks]


def _union(lists: Iterable[Iterable[One]]) -> tuple[One, ...]:
    """Return every one of them once, in the order of first appearance."""
    return tuple(dict.fromkeys(one for each in lists for one in each))


def pooled_caveats(sites: Named, left_out: list[str]) -> tuple[Fact, ...]:
    """Return what the pooled interval does not cover: what no site's does, and who is not in it."""
    own = _union(result.not_covered for _, result in sites)
    return (*((SitesLeftOut(tuple(left_out)),) if left_out else ()), *own)


def pooled_opening(sites: Named) -> dict[str, Any]:
    """Return what comes first: what the interval is for, depends on and assumes at any site, and whose it is.

    Each is None where no site says anything, and that of all sites where it is one.
    """
    names = tuple(name for name, _ in sites)
    found: dict[str, Any] = {}
    for role in OPENING:
        said = tuple(getattr(result, role) for _, result in sites)
        # Of a bound and of models it is enough that one site depends on them; the others have nothing to say.
        some = {one for one in said if one is not None} if role in ("condition", "assumes") else {*said}
        found[role] = next(iter(some), None) if len(some) < 2 else AtSites(names, said)
    return found
