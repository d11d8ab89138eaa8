"""Whether answers of several sites belong together, and what the answer pooled from them is.

In: released answers of sites, by name. They must be about the same treatment, outcome, estimand, measure and
unit of protection, and no release may be sent twice. Out: a refusal, or what is said of the pooled answer:
its guarantee, spending, caveats and details.

Sites hold different people, which they promise and nobody can check. Then everyone keeps the guarantee of
their own site, and the largest epsilon and the largest delta of all sites hold for everybody; nothing adds
up. Proof: "Guarantee" of `inference/pooling.proof.md`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from counterveil.errors import refusal
from counterveil.inference.quotient import DIFFERENCE
from counterveil.privacy import Budget, Estimand, Guarantee, Proof, Protected, show
from counterveil.privacy.caveats import OPENING, AtSites, Fact, SitesLeftOut
from counterveil.questions.pooling.reading import rows_of
from counterveil.results.regression import Moments
from counterveil.results.result import Result

Named = list[tuple[str, Result]]
# Sites with answers of one kind, whichever it is.
Answers: TypeAlias = Sequence[tuple[str, Any]]
Item = TypeVar("Item")


def check_agreement(sites: Answers) -> None:
    """Raise unless the results answer one question about different people."""
    if len(sites) < 2:
        raise refusal("CV-P500", sites=len(sites), plural="" if len(sites) == 1 else "s")
    _check_same(sites)
    _check_distinct(sites)


def _question(result: Any) -> dict[str, str]:
    facts = {
        "unit of protection": result.guarantee.unit.value,
        "measure": getattr(result, "measure", DIFFERENCE),
        "estimand": getattr(result, "estimand", Estimand.ATE).value,
        "treatment": result.treatment,
        "outcome": result.outcome,
        "population": "everyone"
        if getattr(result, "population", None) is None
        else "trimmed by propensity scores",
    }
    # What the effects of a table, or the columns of moments, are of; groups that are too small may be missing.
    facts |= {name: str(getattr(result, name)) for name in result._SAME_AT_SITES}
    return facts | ({"kind of answer": type(result).__name__} if not isinstance(result, Result) else {})


def _check_same(sites: Answers) -> None:
    first_name, first_result = sites[0]
    wanted = _question(first_result)
    for name, result in sites[1:]:
        for word, value in _question(result).items():
            if value != wanted.get(word, "none"):
                first = wanted.get(word, "none")
                raise refusal(
                    "CV-P503", word=word, first_name=first_name, wanted=first, name=name, value=value
                )


def _check_distinct(sites: Answers) -> None:
    site_of_release: dict[tuple[object, ...], str] = {}
    for name, result in sites:
        # Two draws of noise do not agree in every number; the same release sent twice does.
        key = (*result._site_numbers(), result.spent)
        if key in site_of_release:
            raise refusal("CV-P504", seen=site_of_release[key], name=name)
        site_of_release[key] = name


PAGE = "inference/pooling.proof.md"
_DISJOINT = (
    "which site each person is in, and that nobody is in two: the sites must ensure this, it is not checked"
)
# From the best to the worst: a pooled result is as well proved as its worst part.
_ORDER = (Proof.FINITE_SAMPLE, Proof.ASYMPTOTIC, Proof.REFUTED, Proof.NONE)


def pooled_guarantee(sites: Answers) -> Guarantee:
    """Return what is guaranteed to everyone in any of the sites: the weakest of the sites' guarantees."""
    guarantees = [result.guarantee for _, result in sites]
    by_site = [(name, result.guarantee) for name, result in sites]
    remarks = [f"{name}: {guarantee.warning}" for name, guarantee in by_site if guarantee.warning is not None]
    remarks += [f"{name}: {remark}" for name, guarantee in by_site for remark in guarantee.remarks]
    return Guarantee(
        epsilon=max(guarantee.epsilon for guarantee in guarantees),
        delta=max(guarantee.delta for guarantee in guarantees),
        unit=guarantees[0].unit,
        proof=max((guarantee.proof for guarantee in guarantees), key=_ORDER.index),
        public=_union([(_DISJOINT,), *(guarantee.public for guarantee in guarantees)]),
        pages=_union([(PAGE,), *(guarantee.pages for guarantee in guarantees)]),
        remarks=(_epsilons(sites), *remarks),
        whose=min((guarantee.whose for guarantee in guarantees), key=list(Protected).index),
    )


def pooled_spending(sites: Answers) -> Budget:
    """Return the most that anyone's data have spent: sites hold different people, so nothing adds up."""
    return Budget(
        max(result.spent.epsilon for _, result in sites), max(result.spent.delta for _, result in sites)
    )


def _epsilons(sites: Answers) -> str:
    amounts = [
        f"{name} {show(result.guarantee.epsilon)}"
        + (f" (delta {show(result.guarantee.delta)})" if result.guarantee.delta else "")
        for name, result in sites
    ]
    return f"each person has the epsilon of their own site: {', '.join(amounts)}; the guarantee names the largest"


def _union(lists: Iterable[Iterable[Item]]) -> tuple[Item, ...]:
    """Return every item once, in the order of first appearance."""
    return tuple(dict.fromkeys(item for items in lists for item in items))


def pooled_caveats(sites: Answers, left_out: list[str]) -> tuple[Fact, ...]:
    """Return what the pooled interval does not cover: what no site's does, and who is not in it."""
    of_sites = _union(result.not_covered for _, result in sites)
    return (*((SitesLeftOut(tuple(left_out)),) if left_out else ()), *of_sites)


def pooled_opening(sites: Answers) -> dict[str, Any]:
    """Return what comes first: what the interval is for, depends on and assumes at any site, and whose it is.

    Each is None where no site says anything, and that of all sites where it is one.
    """
    names = tuple(name for name, _ in sites)
    roles: dict[str, Any] = {}
    for role in OPENING:
        facts = tuple(getattr(result, role) for _, result in sites)
        # Of a bound and of models it is enough that one site depends on them; the others have nothing to say.
        stated = (
            {fact for fact in facts if fact is not None} if role in ("condition", "assumptions") else {*facts}
        )
        roles[role] = next(iter(stated), None) if len(stated) < 2 else AtSites(names, facts)
    return roles


def sizes_of(sites: Answers) -> NDArray[np.float64]:
    """Return the public numbers of rows (J,)."""
    rows = [rows_of(result) for _, result in sites]
    for (name, result), count in zip(sites, rows, strict=True):
        if count is None:
            raise refusal("CV-P505", name=name, method=result.method)
    return np.array(rows, dtype=np.float64)


def shared_provenance(sites: Answers, method: str) -> dict[str, Any]:
    """Return the attributes of a pooled answer that say what was asked, guaranteed and spent."""
    first = sites[0][1]
    return {
        "guarantee": pooled_guarantee(sites),
        "spent": pooled_spending(sites),
        "treatment": first.treatment,
        "outcome": first.outcome,
        "releases": tuple(
            (name, f"{getattr(result, 'method', 'moments')}, {result.spent}") for name, result in sites
        ),
    } | ({} if isinstance(first, Moments) else {"method": method})


def shared_details(sizes: Iterable[float], further: Mapping[str, float | str]) -> dict[str, float | str]:
    """Return the public numbers of a pooled answer: people, sites, and further ones."""
    numbers = [*sizes]
    return {"rows": int(sum(numbers)), "sites": len(numbers), **further}
