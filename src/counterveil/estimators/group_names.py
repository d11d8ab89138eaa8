"""Names of the groups that a public layout of covariates makes, such as ``age in [20, 40), sex=f``.

In: the public layout (names, declared ranges with cut points, declared labels). Out: one name for each group,
in the order of groups' numbers. Nothing private is read.
"""

from __future__ import annotations

from itertools import product

from counterveil.data import Layout, Range
from counterveil.data.domains import Domain
from counterveil.privacy import show


def group_names(layout: Layout) -> tuple[str, ...]:
    """Return what every group is called, in the order of their places."""
    labels = [_labels(name, domain) for name, domain in zip(layout.names, layout.domains, strict=True)]
    return tuple(", ".join(group) for group in product(*labels))


def _labels(name: str, domain: Domain) -> list[str]:
    if not isinstance(domain, Range):
        return [f"{name}={label}" for label in domain.labels]
    ends = [domain.lo, *domain.cuts, domain.hi]
    last = len(ends) - 2
    return [
        f"{name} in [{show(ends[index])}, {show(ends[index + 1])}{']' if index == last else ')'}"
        for index in range(last + 1)
    ]
