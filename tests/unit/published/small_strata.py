"""All small tables of records (stratum, arm, outcome), order aside, with their neighbours and their strata."""

from functools import lru_cache
from itertools import combinations_with_replacement, product

import numpy as np

from counterveil.numerics.strata import RANGE_STEPS, Strata
from counterveil.published.strata_sensitivity import StratumCounts

WHOLE = RANGE_STEPS
HALF = RANGE_STEPS // 2


def records(outcomes, strata=2):
    return tuple(product(range(strata), (0, 1), outcomes))


@lru_cache
def pairs(outcomes, rows):
    """Return all tables of so many rows, and the places (i, j) of all pairs that differ in one record.

    A table is a sorted multiset of records: the statistics do not know the order of rows.
    """
    kinds = records(outcomes)
    tables = list(combinations_with_replacement(kinds, rows))
    place = {table: i for i, table in enumerate(tables)}
    found = [(i, place[other]) for i, table in enumerate(tables) for other in neighbours(table, kinds)]
    return tables, np.array(found).T


# Outcomes at the ends for up to six rows, with the middle for up to five.
SMALL = [((0, WHOLE), rows) for rows in range(2, 7)] + [((0, HALF, WHOLE), rows) for rows in range(2, 6)]


def neighbours(table, kinds):
    """Return all tables that differ in one record."""
    for place, record in enumerate(table):
        if place and record == table[place - 1]:
            continue
        rest = (*table[:place], *table[place + 1 :])
        for other in kinds:
            if other != record:
                yield tuple(sorted((*rest, other)))


def counts(table, strata=2):
    """Return (treated, control) of every stratum."""
    return tuple(
        tuple(sum(s == x and arm == a for s, arm, _ in table) for a in (1, 0)) for x in range(strata)
    )


def stratum_counts(pairs):
    treated, control = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return StratumCounts.of(treated, control, len(pairs))


def as_strata(table, strata=2):
    """Return the strata of a table as any engine would."""
    stratum, arm, outcome = (np.array(column, dtype=np.int64) for column in zip(*table, strict=True))

    def add(a, values):
        return np.bincount(stratum[arm == a], values[arm == a], strata)

    whole = {
        a: (add(a, np.ones_like(arm)), add(a, outcome), add(a, outcome.astype(float) ** 2)) for a in (1, 0)
    }
    n1, s1, q1 = whole[1]
    n0, s0, q0 = whole[0]
    used = (n1 + n0) > 0
    ints = (n1, n0, s1, s0)
    return Strata(strata, np.flatnonzero(used), *(x[used].astype(np.int64) for x in ints), q1[used], q0[used])


def uneven_table(generator, rows, strata):
    """Return a table of uneven strata and arms whose cells are flat, flat but for one row, or split in halves."""
    share = generator.dirichlet(np.full(strata, 0.7))
    propensity = generator.beta(0.6, 0.6, strata)
    stratum = generator.choice(strata, rows, p=share)
    arm = (generator.random(rows) < propensity[stratum]).astype(int)
    table = []
    for cell in product(range(strata), (0, 1)):
        size = int(((stratum == cell[0]) & (arm == cell[1])).sum())
        high = generator.choice([0, 0, min(1, size), size // 2])
        table += [(*cell, WHOLE if i < high else 0) for i in range(size)]
    return tuple(sorted(table))


def count_neighbours(pairs):
    """Return the counts of all tables that differ in one record from one with these counts, once each."""
    flat = np.array(pairs).ravel()
    found = set()
    for out, into in product(range(len(flat)), repeat=2):
        if flat[out] and out != into:
            other = flat.copy()
            other[out] -= 1
            other[into] += 1
            found.add(tuple(map(tuple, other.reshape(-1, 2).tolist())))
    return found
