"""Groups checked against the study as `Table.attach` checks rows: the same rules, refusals and codes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from counterveil.data import encoding as fixed_point
from counterveil.data.cells import Column, Mask, Numbers
from counterveil.data.domains import Binary, Categories, Range
from counterveil.data.encoding import arms, codes, domain_codes, gaps
from counterveil.data.engines.grouping import LIMB_BITS, MOST_GROUPS, WRONG, Groups
from counterveil.data.facts import SMALLEST_ARM
from counterveil.data.labels import Drop, Fill
from counterveil.data.layout import Layout
from counterveil.data.study import Study
from counterveil.data.wrong_data import (
    constant_treatment,
    empty_table,
    missing_without_rule,
    not_binary,
    small_arm,
    strange_treatment,
    text_for_number,
    too_many_spellings,
    undeclared_category,
)
from counterveil.errors import CounterveilError
from counterveil.numerics.arrays import Integers
from counterveil.privacy import exact

_LIMB = 2**LIMB_BITS


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """Groups that fit a study: gaps filled or dropped, labels coded.

    `kept` marks the groups of the query that are left; everything else has an entry for each of those. `codes` holds
    the code of every label and the bin of every cut range; `place` the stratum in the layout.
    """

    kept: Mask
    treated: Mask
    place: Integers
    codes: dict[str, Integers]
    rows: Integers
    total: Integers
    high: Integers
    low: Integers


def fit(groups: Groups, study: Study, layout: Layout) -> Fitted:
    """Return the groups as strata need them, or raise what attaching the same rows would raise."""
    holes = {key.name: gaps(groups.columns[key.name], key.labels) for key in groups.keys}
    if groups.cut_off:
        raise _flooded(groups, holes, study)
    kept, weight = _apply_rules(groups, holes, study)
    treated = arms(groups.columns[study.treatment].keep(kept), holes[study.treatment][kept], study) == 1
    _check_arms(treated, weight[kept], study)
    if groups.wrong[kept].any():
        raise text_for_number(study.outcome)
    found = {
        key.name: _covariate(
            groups.columns[key.name].keep(kept), holes[key.name][kept], key.name, study, layout
        )
        for key in groups.keys
        if key.name != study.treatment
    }
    filled = (weight - groups.held)[kept]
    step = fill_steps(study)
    return Fitted(
        kept=kept,
        treated=treated,
        place=places(found, layout, int(kept.sum())),
        codes=found,
        rows=weight[kept],
        total=groups.total[kept] + filled * step,
        high=groups.high[kept] + filled * (step * step // _LIMB),
        low=groups.low[kept] + filled * (step * step % _LIMB),
    )


def _flooded(groups: Groups, holes: dict[str, Mask], study: Study) -> CounterveilError:
    """Return why there are more groups than can be fetched: labels that are not declared, most likely."""
    for key in groups.keys:
        if key.labels is None:
            continue
        column, hole = groups.columns[key.name], holes[key.name]
        other = column.keep((codes(column, hole, key.labels, None) < 0) & ~hole)
        domain = study.covariates.get(key.name)
        if isinstance(domain, Categories) and domain.other is not None:
            continue
        if key.name != study.treatment and len(other) > 0:
            return _undeclared(key.name, study)
        # Without a declared control, one other label is what is expected.
        if len(np.unique(other.values if isinstance(other, Numbers) else other.codes)) > 1:
            return strange_treatment(key.name, study.treated, study.control)
    return too_many_spellings(MOST_GROUPS)


def _undeclared(name: str, study: Study) -> CounterveilError:
    domain = study.covariates[name]
    return not_binary(name, domain.labels) if isinstance(domain, Binary) else undeclared_category(name)


def places(codes: dict[str, Integers], layout: Layout, count: int) -> Integers:
    """Return the place in the layout of each of `count` groups, from the code of every covariate."""
    place = np.zeros(count, dtype=np.int64)
    for name, size in zip(layout.names, layout.sizes, strict=True):
        place = place * size + codes[name]
    return place


def _apply_rules(groups: Groups, holes: dict[str, Mask], study: Study) -> tuple[Mask, Integers]:
    """Return which groups are kept, and how many of their rows."""
    outcome_gaps = groups.rows - groups.held - groups.wrong
    any_hole = {name: bool(hole.any()) for name, hole in holes.items()}
    any_hole[study.outcome] = bool(outcome_gaps.any())
    for name in study.columns:
        if any_hole.get(name, False) and study.missing.get(name) is None:
            raise missing_without_rule(name)
    dropped = isinstance(study.missing.get(study.outcome), Drop)
    weight = groups.rows - outcome_gaps if dropped else groups.rows
    kept = weight > 0
    for name, hole in holes.items():
        if isinstance(study.missing.get(name), Drop):
            kept &= ~hole
    if not kept.any():
        raise empty_table()
    return kept, weight


def _check_arms(treated: Mask, weight: Integers, study: Study) -> None:
    fewest = min(int(weight[treated].sum()), int(weight[~treated].sum()))
    if fewest == 0:
        raise constant_treatment(study.treatment)
    if fewest < SMALLEST_ARM:
        raise small_arm(study.treatment)


def _covariate(column: Column, hole: Mask, name: str, study: Study, layout: Layout) -> Integers:
    domain, rule = study.covariates[name], study.missing.get(name)
    if isinstance(domain, Range):
        return _bins(column, hole, name, study, layout)
    found = domain_codes(column, hole, domain, rule)
    if (found < 0).any():
        raise _undeclared(name, study)
    return found


def _bins(column: Column, hole: Mask, name: str, study: Study, layout: Layout) -> Integers:
    filled = fill_bin(name, study, layout)
    if not isinstance(column, Numbers):
        return np.full(len(column), filled, dtype=np.int64)
    found = np.where(hole, filled, column.values).astype(np.int64)
    if (found == WRONG).any():
        raise text_for_number(name)
    return found


def fill_bin(name: str, study: Study, layout: Layout) -> int:
    """Return the bin of the value that is filled in where a cut range is missing."""
    rule = study.missing.get(name)
    if not isinstance(rule, Fill) or name not in layout.names:
        return 0
    domain = layout.domains[layout.names.index(name)]
    value = float(exact(rule.value, "Fill"))
    return sum(value >= edge for edge in domain.thresholds()) if isinstance(domain, Range) else 0


def fill_steps(study: Study) -> int:
    """Return the steps of the outcome that is filled in where it is missing; 0 where none is."""
    rule = study.missing.get(study.outcome)
    value = float(exact(rule.value, "Fill")) if isinstance(rule, Fill) else 0.0
    return int(fixed_point.to_steps(np.array([value]), study.outcome_bounds)[0])
