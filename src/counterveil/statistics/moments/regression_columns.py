"""The columns whose second moments are released for regressions: their names, their place in a row, and their units.

Covariates are features in [-1, 1] (`FeatureMap`), every arm but the reference is a flag, then comes the outcome. With a
released centre c and scale s they become z = (x - c) / s, and interactions are products of two of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Study
from counterveil.data.features import counted_features, feature_map
from counterveil.data.labels import Label
from counterveil.errors import CounterveilError, refusal
from counterveil.numerics.arrays import Floats
from counterveil.numerics.products import Column, FeatureMap
from counterveil.statistics.moments.records import MIDDLE, Part

CONSTANT = "Intercept"


@dataclass(frozen=True, slots=True)
class Columns:
    """What a row holds, public: covariates' features, flags of arms, outcomes; and products of two of these.

    `responses` says of every column but the products whether it is one that regressions may explain (outcomes, arms):
    no row is given less weight for its value.
    """

    names: tuple[str, ...]
    features: FeatureMap
    arms: tuple[Label, ...]
    responses: tuple[bool, ...]
    products: tuple[tuple[int, int], ...]
    ends: tuple[tuple[float, float], ...]  # middle and half width of every column in its own units
    groups: tuple[tuple[str, tuple[str, ...]], ...]  # covariates or treatments of several columns
    measures: int = 0  # further outcomes, and what was measured of outcomes before

    @classmethod
    def of(cls, study: Study, outcomes: Sequence[str], interactions: Sequence[str]) -> Columns:
        """Return the columns that a study and the arguments declare; no row is looked at."""
        features = feature_map(study, 1)
        arms = study.arms[1:] if study.arms is not None else (study.treated,)
        treatments = [study.treatment] if study.arms is None else [f"{study.treatment}={arm}" for arm in arms]
        own = [column.source for column in features.columns]
        labels = [_named(study, column) for column in features.columns]
        more = () if study.several is None else study.several.columns[1:]
        names = (*labels, *treatments, study.outcome, *more)
        ends = [(column.low + column.width / 2, column.width / 2) for column in features.columns]
        ends += [(0.5, 0.5)] * len(arms) + [_middle(study, name) for name in (study.outcome, *more)]
        groups = [
            (name, tuple(label for label, source in zip(labels, own, strict=True) if source == name))
            for name in study.covariates
        ]
        groups += [(study.treatment, tuple(treatments))]
        _refuse_unknown(outcomes, tuple(study.covariates), "outcomes")
        explained = (study.outcome,) if study.several is None else study.several.names
        responses = [source in outcomes for source in own] + [True] * len(arms)
        responses += [name in explained for name in (study.outcome, *more)]
        flags = {
            name: source
            for name, source, known in zip(labels, own, features.two_valued, strict=True)
            if known
        }
        flags |= dict.fromkeys(treatments, study.treatment)
        products, named = _products(interactions, names, dict(groups), flags)
        return cls(
            (*names, *named),
            features,
            tuple(arms),  # type: ignore[arg-type]
            tuple(responses),
            products,
            tuple(ends),
            tuple((name, members) for name, members in groups if members != (name,)),
            len(more),
        )

    @property
    def singles(self) -> int:
        """Number of columns that are no products."""
        return len(self.responses)

    @property
    def counted(self) -> int:
        """The number of columns in the bound of what one record moves; flags of one column count as two at most."""
        return counted_features(self.features) + min(2, len(self.arms)) + 1 + self.measures

    @property
    def two_valued(self) -> NDArray[np.bool_]:
        """Which single columns hold -1 and 1 alone, so that their squares are known."""
        return np.append(self.features.two_valued, [True] * len(self.arms) + [False] * (1 + self.measures))

    def block(self, part: Part) -> Floats:
        """Return the (rows, singles) columns of a block of rows, each in [-1, 1]."""
        arms = part.batch.arm[part.rows]
        flags = [np.where(arms == place, 1.0, -1.0) for place in range(1, len(self.arms) + 1)]
        covariates = part.x.T if self.features.columns else np.empty((0, len(arms)))
        more = [(steps[part.rows] - MIDDLE) / MIDDLE for steps in part.batch.measures[: self.measures]]
        return np.vstack((covariates, *flags, part.y, *more)).T

    def basis(self, centre: Floats, scale: Floats) -> Floats:
        """Return every named column, the constant first, as a combination of (1, z, products of z)."""
        middle, half = np.array(self.ends).T
        zero, slope = middle + half * centre, half * scale
        size = 1 + len(self.names)
        found = np.zeros((size, size))
        found[0, 0] = 1.0
        for place in range(self.singles):
            found[1 + place, 0], found[1 + place, 1 + place] = zero[place], slope[place]
        for place, (i, j) in enumerate(self.products, 1 + self.singles):
            found[place, 0] = zero[i] * zero[j]
            found[place, 1 + i] += slope[i] * zero[j]
            found[place, 1 + j] += slope[j] * zero[i]
            found[place, place] = slope[i] * slope[j]
        return found


def _middle(study: Study, name: str) -> tuple[float, float]:
    """Return the middle and half the width of the range of an outcome, or of what was measured before."""
    bounds = study.measured_bounds(name)
    low, high = (study.outcome_bounds if bounds is None else bounds).floats()
    return (low + high) / 2, (high - low) / 2


def _named(study: Study, column: Column) -> str:
    """Return the name of a covariate's column; the last label is the reference and has none."""
    domain = study.covariates[column.source]
    return column.source if column.label is None else f"{column.source}={domain.labels[column.label]}"  # type: ignore[union-attr]


def _refuse_unknown(asked: Sequence[str], known: Sequence[str], argument: str) -> None:
    """Raise CV-P780 for a name that is not among the columns."""
    for name in asked:
        if name not in known:
            raise refusal(
                "CV-P780b", argument=argument, known=", ".join(map(repr, known)) or "no covariates", name=name
            )


def _products(
    interactions: Sequence[str],
    names: Sequence[str],
    groups: dict[str, tuple[str, ...]],
    flags: dict[str, str],
) -> tuple[tuple[tuple[int, int], ...], list[str]]:
    """Return pairs of places and names of the products of pairs such as "treat:age"; those of labels are all taken.

    `flags` says of every flag which column it is of: products of two flags of one column are known.
    """
    found: dict[tuple[int, int], str] = {}
    for text in interactions:
        factors = [factor.strip() for factor in text.split(":")] if isinstance(text, str) else []
        if len(factors) != 2:
            raise _no_interaction(text)
        _refuse_unknown(factors, tuple(dict.fromkeys((*groups, *names))), "interactions")
        one, two = (groups.get(factor, (factor,)) for factor in factors)
        own = {
            (names.index(first), names.index(second)): f"{first}:{second}"
            for first in one
            for second in two
            if first not in flags or flags.get(second) != flags[first]
        }
        if not own:
            raise _no_interaction(text)
        found |= {pair: name for pair, name in own.items() if pair[::-1] not in found or pair[0] == pair[1]}
    return tuple(found), list(found.values())


def _no_interaction(text: object) -> CounterveilError:
    return refusal("CV-P781", text=text)
