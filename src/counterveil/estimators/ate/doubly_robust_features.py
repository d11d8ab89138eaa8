"""The features of a study, from its declarations alone; no row is looked at."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from counterveil.data import Categories, Range, Study
from counterveil.kernels.record_features import Column, FeatureMap, Standard


def feature_map(study: Study, degree: int) -> FeatureMap:
    """Return the columns of a study's covariates and, at degree 2, their products and squares."""
    columns = tuple(_columns(study))
    if degree == 1:
        return FeatureMap(columns)
    pairs = [
        (i, j)
        for i in range(len(columns))
        for j in range(i, len(columns))
        if not _known(columns[i], columns[j], i == j)
    ]
    return FeatureMap(columns, tuple(pairs))


def public_standard(
    features: FeatureMap, means: tuple[float, ...], sds: tuple[float, ...], limit: float
) -> Standard:
    """Return the map to standardised rows from public means and standard deviations, in a study's units."""
    low = np.array([column.low for column in features.columns])
    width = np.array([column.width for column in features.columns])
    centre = np.clip(2 * (np.array(means) - low) / width - 1, -1.0, 1.0)
    return Standard(centre, np.clip(2 * np.array(sds) / width, 1e-3, 1.0), limit, np.inf)


def counted_features(features: FeatureMap) -> int:
    """Return the number of features; flags of one covariate, of which one at most is up, count as two at most."""
    flags: dict[str, int] = {}
    others = len(features.pairs)
    for column in features.columns:
        if column.label is None:
            others += 1
        else:
            flags[column.source] = flags.get(column.source, 0) + 1
    return others + sum(min(2, count) for count in flags.values())


def _columns(study: Study) -> Iterator[Column]:
    for name, domain in study.covariates.items():
        if isinstance(domain, Categories):
            # The last label is the reference: with all of them the columns would add up to a constant.
            for code in range(len(domain.labels) - 1):
                yield Column(name, 0.0, 1.0, code, True)
        elif isinstance(domain, Range):
            low, high = domain.floats()
            yield Column(name, low, high - low, None, False)
        else:
            yield Column(name, 0.0, 1.0, None, True)


def _known(first: Column, second: Column, same: bool) -> bool:
    """Whether the product is constant or a combination of features that are there already."""
    if same:
        return first.two_valued
    return first.source == second.source
