"""The layout of strata: which covariates define them, and the cut points of numeric ones; all public."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from counterveil.data.cells import nearest
from counterveil.data.domains import Domain, Range
from counterveil.data.study import Study
from counterveil.errors import refusal
from counterveil.numerics.arrays import Integers
from counterveil.privacy import show

# The place of a stratum and its arm must fit a signed 64-bit integer.
_MOST_STRATA = 2**62


@dataclass(frozen=True, slots=True)
class Layout:
    """Strata as cells of a grid of covariates; made by `Layout.of`.

    Attributes
    ----------
    names : tuple of str
        Covariates that make strata.
    domains : tuple of Domain
        Labels or cut range of each of them.

    Notes
    -----
    A stratum's place is a mixed-radix number whose first covariate counts most.
    """

    names: tuple[str, ...]
    domains: tuple[Domain, ...]

    @classmethod
    def of(
        cls,
        study: Study,
        names: tuple[str, ...] | None = None,
        cuts: Mapping[str, tuple[Fraction, ...]] | None = None,
    ) -> Layout:
        """Return the strata that covariates make.

        Parameters
        ----------
        study : Study
            The study with the covariates.
        names : tuple of str, optional
            Covariates that make strata; all of them if omitted.
        cuts : mapping of str to tuple of Fraction, optional
            Cut points in place of the declared ones; an empty tuple makes one bin.

        Returns
        -------
        Layout
            At most 2^62 strata, occupied or not.

        Raises
        ------
        StudyError
            Cut points of no range (CV-S073), too many strata (CV-S074), or covariates that make none.
        """
        chosen = tuple(study.covariates) if names is None else _checked(names, study)
        points = {} if cuts is None else dict(cuts)
        for name in points:
            if name not in chosen or not isinstance(study.covariates[name], Range):
                raise refusal("CV-S073", name=name, chosen=", ".join(map(repr, chosen)) or "nothing")
        layout = cls(chosen, tuple(_domain(name, study.covariates[name], points) for name in chosen))
        if layout.public > _MOST_STRATA:
            raise refusal("CV-S074", public=layout.public.bit_length() - 1)
        return layout

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of labels or bins of each covariate."""
        return tuple(
            len(domain.cuts) + 1 if isinstance(domain, Range) else len(domain.labels)
            for domain in self.domains
        )

    @property
    def public(self) -> int:
        """The number of strata, occupied or not."""
        return math.prod(self.sizes)

    def describe(self) -> str:
        """Return the layout in plain words, for people; made of declarations alone."""
        if not self.names:
            return "one stratum: everybody"
        parts = [
            f"{name!r} ({_what(domain, size)})"
            for name, domain, size in zip(self.names, self.domains, self.sizes, strict=True)
        ]
        return f"{self.public} {'stratum' if self.public == 1 else 'strata'} by {', '.join(parts)}"


@dataclass(frozen=True, slots=True)
class MergedLayout:
    """Strata of a layout, neighbouring labels or bins of covariates merged into so many; all public."""

    layout: Layout
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, layout: Layout, most: int) -> MergedLayout:
        """Return at most so many strata, but two labels or bins of every covariate: none is left out.

        The covariate with the most of them has one less, in turn.
        """
        sizes = list(layout.sizes)
        while math.prod(sizes) > most and max(sizes, default=0) > 2:
            place = sizes.index(max(sizes))
            sizes[place] -= 1
        return cls(layout, tuple(sizes))

    @property
    def public(self) -> int:
        """The number of strata, occupied or not."""
        return math.prod(self.sizes)

    def places(self) -> Integers:
        """Return for every stratum of the layout the place of the one that it is merged into."""
        found = np.zeros(1, dtype=np.int64)
        for size, kept in zip(self.layout.sizes, self.sizes, strict=True):
            found = (found[:, None] * kept + np.arange(size) * kept // size).ravel()
        return found

    def groups(self) -> dict[str, tuple[tuple[str, ...], ...]]:
        """Return the labels or bins that were merged, by covariate; of those alone where any were."""
        found = {}
        for name, domain, size, kept in zip(
            self.layout.names, self.layout.domains, self.layout.sizes, self.sizes, strict=True
        ):
            if kept < size:
                levels = _levels(domain)
                own = [
                    tuple(levels[one] for one in range(size) if one * kept // size == k) for k in range(kept)
                ]
                found[name] = tuple(own)
        return found


def _levels(domain: Domain) -> list[str]:
    """Return the labels, or the ends of the bins."""
    if not isinstance(domain, Range):
        return [str(label) for label in domain.labels]
    ends = [show(end) for end in (domain.lo, *domain.cuts, domain.hi)]
    return [f"{low} to {high}" for low, high in pairwise(ends)]


def _checked(names: Iterable[str], study: Study) -> tuple[str, ...]:
    listed = (names,) if isinstance(names, str) else tuple(names)
    for place, name in enumerate(listed):
        if name not in study.covariates or name in listed[:place]:
            raise refusal(
                "CV-S072",
                name=name,
                listed=listed,
                fix="list each covariate once"
                if name in study.covariates
                else nearest(name, study.covariates, "the study"),
            )
    return listed


def _domain(name: str, domain: Domain, points: dict[str, tuple[Fraction, ...]]) -> Domain:
    if not isinstance(domain, Range):
        return domain
    if name in points:
        whole = Range(domain.lo, domain.hi, name=repr(name))
        return whole.cut(*points[name]) if points[name] else whole
    if not domain.cuts:
        raise refusal("CV-S071", name=name, got=repr(domain), domain=domain)
    return domain


def _what(domain: Domain, size: int) -> str:
    if not isinstance(domain, Range):
        return f"{size} labels"
    if not domain.cuts:
        return "not cut"
    return f"{size} bins, cut at {', '.join(show(cut) for cut in domain.cuts)}"
