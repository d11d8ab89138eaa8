"""k-anonymous records by Mondrian (LeFevre, DeWitt and Ramakrishnan 2006), and the effect that is left in them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from counterveil.reproduce.rivals.encoding import Codes, Floats, features
from counterveil.reproduce.rivals.plain import by_arms
from counterveil.reproduce.rivals.protocol import Answer, Budget, Records

K = 10


def groups(x: Floats, least: int) -> Codes:
    """Return a group for every row: rows are halved at the median of their widest column while both halves keep K."""
    group = np.zeros(len(x), dtype=np.int64)
    waiting, found = [np.arange(len(x))], 0
    while waiting:
        places = waiting.pop()
        halves = _halves(x[places], least)
        if halves is None:
            group[places] = found
            found += 1
        else:
            waiting += [places[halves], places[~halves]]
    return group


def _halves(x: Floats, least: int) -> np.ndarray | None:
    """Return who is below the median of the widest column that can be cut, None if none can be."""
    if len(x) < 2 * least:
        return None
    for column in np.argsort(-np.ptp(x, axis=0), kind="stable"):
        below = x[:, column] < np.median(x[:, column])
        if least <= below.sum() <= len(x) - least:
            return np.asarray(below)
    return None


def k_anonymous(records: Records, _: Budget, __: int) -> Answer:
    """Return the effect after covariates were replaced by their group's mean."""
    if not records.x.shape[1]:
        return Answer(by_arms(records))
    group = groups(features(records), K)
    sizes = np.bincount(group)
    means = [np.bincount(group, weights=column) / sizes for column in records.x.T]
    general = np.column_stack([mean[group] for mean in means])
    # Means of labels are no labels: they are measurements now.
    return Answer(by_arms(replace(records, x=general, values=None)))
