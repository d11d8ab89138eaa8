"""The promise of a pooled result: everyone keeps that of their own site."""

from __future__ import annotations

from collections.abc import Iterable

from counterveil.estimators.pooled.agreement import Named
from counterveil.privacy import Budget, Guarantee, Proof, show

PAGE = "inference/pooling.proof.md"
_DISJOINT = (
    "which site each person is in, and that nobody is in two: the sites must see to it, it is not checked"
)
# From the best to the worst: a pooled result is as well proved as its worst part.
_ORDER = (Proof.FINITE_SAMPLE, Proof.ASYMPTOTIC, Proof.REFUTED, Proof.NONE)


def pooled_guarantee(sites: Named) -> Guarantee:
    """Return what is promised to everyone in any of the sites: the weakest of the sites' promises."""
    promises = [result.guarantee for _, result in sites]
    return Guarantee(
        epsilon=max(promise.epsilon for promise in promises),
        delta=max(promise.delta for promise in promises),
        unit=promises[0].unit,
        proof=max((promise.proof for promise in promises), key=_ORDER.index),
        public=_union([(_DISJOINT,), *(promise.public for promise in promises)]),
        pages=_union([(PAGE,), *(promise.pages for promise in promises)]),
        remarks=(_each(sites), *_marked(sites), *_own_remarks(sites)),
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
    return f"each person has the epsilon of their own site: {', '.join(said)}; the promise names the largest"


def _marked(sites: Named) -> list[str]:
    """Return a remark on every site whose promise is less than proved."""
    return [
        f"{name}: {result.guarantee.warning}"
        for name, result in sites
        if result.guarantee.warning is not None
    ]


def _own_remarks(sites: Named) -> list[str]:
    return [f"{name}: {remark}" for name, result in sites for remark in result.guarantee.remarks]


def _union(lists: Iterable[Iterable[str]]) -> tuple[str, ...]:
    """Return every text once, in the order of first appearance."""
    return tuple(dict.fromkeys(text for texts in lists for text in texts))


def pooled_caveats(sites: Named, left_out: list[str]) -> tuple[str, ...]:
    """Return what the pooled interval does not cover: what no site's does, and who is not in it."""
    own = _union(result.not_covered for _, result in sites)
    return ((f"the people of sites left out: {', '.join(left_out)}",) if left_out else ()) + own


def pooled_target(sites: Named) -> str | None:
    """Return what the interval is for where a site's is not for the effect, None where all are."""
    targets = dict.fromkeys(result.interval_of for _, result in sites)
    if len(targets) == 1:
        return next(iter(targets))
    said = [f"{name}, {result.interval_of or 'the effect'}" for name, result in sites]
    return f"an average of different things: {'; '.join(said)}"
