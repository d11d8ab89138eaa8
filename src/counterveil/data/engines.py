"""Strata counted by an engine: one query groups the coded rows, in DuckDB or inside the database that holds a table.

The SQL of values, bins and steps is written once, in DuckDB's dialect, and gives the same doubles in every engine. Only
operations that IEEE 754 fixes to the bit are used: comparison, subtraction, multiplication, floor. Every comparison is
one that a NaN fails whether the engine counts it as the largest number or as no number. Groups are checked against the
study as `Table.attach` checks rows: the same rules, refusals and codes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from counterveil.data import domains as encoding
from counterveil.data.cells import Column, Mask, Numbers, strange_treatment
from counterveil.data.domains import OUTCOME_STEPS, Categories, Drop, Fill, LabelIndex, Range, codes, gaps
from counterveil.data.layout import Layout
from counterveil.data.sources.dispatch import ROWS, Engine
from counterveil.data.sources.relations import Kind, as_decimals, is_blank, number_from_text
from counterveil.data.study import Study
from counterveil.data.table import Stage, Survey
from counterveil.errors import CounterveilError, refusal
from counterveil.numerics.arrays import Integers
from counterveil.privacy import exact

# The bin of a text where a number is needed.
WRONG = -1

INFINITY = "CAST('Infinity' AS DOUBLE)"
_MOST_SHIFTED = 62


def double(value: float) -> str:
    """Return SQL for exactly this finite double: a decimal literal could be read as its neighbour."""
    numerator, denominator = value.as_integer_ratio()
    # Odd numerators have at most 53 bits; the rest is powers of two, multiplied in without rounding.
    shift = (numerator & -numerator).bit_length() - 1 if numerator else 0
    text = f"CAST({numerator >> shift} AS DOUBLE)"
    power, mark = (shift, "*") if denominator == 1 else (denominator.bit_length() - 1, "/")
    while power > 0:
        step = min(power, _MOST_SHIFTED)
        text += f" {mark} CAST({2**step} AS DOUBLE)"
        power -= step
    return f"({text})"


def number(identifier: str, kind: Kind, native: bool) -> str:
    """Return SQL for the double that a cell holds, NULL where it holds none; NaN may remain."""
    if kind is Kind.BOOLEAN:
        return f"CAST(CASE WHEN {identifier} THEN 1 WHEN NOT {identifier} THEN 0 END AS DOUBLE)"
    if kind is Kind.TEXT:
        return number_from_text(identifier)
    if kind is Kind.EXACT:
        # Through decimal text: the double nearest to the written number, as for every other source.
        return f"CAST(CAST({identifier} AS VARCHAR) AS DOUBLE)"
    if kind is Kind.UNBOUNDED:
        return _narrowed(identifier)
    value = f"CAST({identifier} AS DOUBLE)"
    if not native or kind is not Kind.FLOAT:
        return value
    # The number itself, wrapped and unwrapped so that nothing is known of it beforehand. DuckDB takes the least and
    # the largest number in the header of a Parquet file for bounds of all cells, NaN among them, and would decide
    # comparisons without looking.
    return f"union_value(cell := {value}).cell"


def _narrowed(identifier: str) -> str:
    """Return SQL for the double nearest to a PostgreSQL number of any size, which its own cast may refuse."""
    beyond = "1" + "0" * 301
    # Half the least double, and whatever lies nearer to zero, rounds to zero.
    least = f"0.{5**1075:01075d}"
    return (
        f"CASE WHEN CAST({identifier} AS VARCHAR) = 'NaN' THEN NULL "
        f"WHEN {identifier} > {beyond} THEN {INFINITY} WHEN {identifier} < -{beyond} THEN -{INFINITY} "
        f"WHEN {identifier} >= -{least} AND {identifier} <= {least} THEN CAST(0 AS DOUBLE) "
        f"ELSE CAST(CAST({identifier} AS VARCHAR) AS DOUBLE) END"
    )


def bins(value: str, thresholds: tuple[float, ...], wrong: str | None) -> str:
    """Return SQL for the number of thresholds that a value has reached; NULL for a gap, WRONG for a text."""
    flaw = "" if wrong is None else f"WHEN {wrong} THEN {WRONG} "
    return f"CASE {flaw}WHEN {value} <= {INFINITY} THEN {_search(value, thresholds, 0)} END"


def _search(value: str, thresholds: tuple[float, ...], below: int) -> str:
    # A balanced tree: a fine grid costs its logarithm in comparisons.
    if not thresholds:
        return str(below)
    middle = len(thresholds) // 2
    left = _search(value, thresholds[:middle], below)
    right = _search(value, thresholds[middle + 1 :], below + middle + 1)
    return f"CASE WHEN {value} < {double(thresholds[middle])} THEN {left} ELSE {right} END"


def steps(value: str, bounds: Range) -> str:
    """Return SQL for the whole steps of an outcome, NULL for a gap; bit for bit `encoding.to_steps`."""
    low, high = float(bounds.lo), float(bounds.hi)
    steps_per_unit = float(OUTCOME_STEPS / bounds.width)
    inside = f"CAST(FLOOR(({value} - {double(low)}) * {double(steps_per_unit)}) AS BIGINT)"
    if (math.nextafter(high, low) - low) * steps_per_unit >= OUTCOME_STEPS + 1:
        inside = f"CASE WHEN {inside} > {OUTCOME_STEPS} THEN {OUTCOME_STEPS} ELSE {inside} END"
    above_low = math.nextafter(low, high) - low
    if above_low * steps_per_unit == 0:
        # PostgreSQL refuses a product that vanishes; below half a step the floor is 0 anyway.
        inside = (
            f"CASE WHEN {value} - {double(low)} < {double(0.5 / steps_per_unit)} THEN 0 ELSE {inside} END"
        )
    return (
        f"CASE WHEN {value} <= {double(low)} THEN 0 WHEN {value} < {double(high)} THEN {inside} "
        f"WHEN {value} <= {INFINITY} THEN {OUTCOME_STEPS} END"
    )


def literal(cell: object) -> str:
    """Return SQL for a cell as the engine gave it."""
    if isinstance(cell, str):
        return "'" + cell.replace("'", "''") + "'"
    if isinstance(cell, bool):
        return "TRUE" if cell else "FALSE"
    if isinstance(cell, int):
        return f"CAST({cell} AS BIGINT)" if -(2**63) < cell < 2**63 else f"CAST('{cell}' AS HUGEINT)"
    if isinstance(cell, float):
        return double(cell)
    raise TypeError(type(cell).__name__)


@dataclass(frozen=True, slots=True)
class Key:
    """A column that rows are grouped by: its name in the study, in the query, and what it holds there.

    `labels` is None for a bin; `exact` says that decimals stand there as text.
    """

    name: str
    alias: str
    kind: Kind
    labels: LabelIndex | None
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Coding:
    """A query with a row for every row: the keys, the steps `q`.

    `flawed` says that it also has `wrong`, which marks outcomes that are text and no number.
    """

    text: str
    keys: tuple[Key, ...]
    flawed: bool


def columns_read(study: Study, layout: Layout) -> tuple[str, ...]:
    """Return the columns that strata need: those that make them, and those whose gaps leave out rows."""
    covariates = (
        name for name in study.covariates if name in layout.names or isinstance(study.missing.get(name), Drop)
    )
    return (study.treatment, study.outcome, *covariates)


def coding(engine: Engine, study: Study, layout: Layout) -> Coding:
    """Return the query that codes every row."""
    inner: list[str] = []
    outer: list[str] = []
    keys: list[Key] = []
    flawed = False
    for place, name in enumerate(columns_read(study, layout)):
        sql, kind = engine.columns[name]
        labels = study._label_index(name)
        if labels is not None:
            written = kind in (Kind.EXACT, Kind.UNBOUNDED)
            inner.append(f"{_label(sql, kind, engine.native)} AS k{place}")
            outer.append(f"k{place}")
            keys.append(Key(name, f"k{place}", Kind.TEXT if written else kind, labels, written))
            continue
        if kind is Kind.TEXT and not engine.native:
            raise refusal("CV-D052", name=name)
        inner.append(f"{number(sql, kind, engine.native)} AS x{place}")
        wrong = None
        if kind is Kind.TEXT:
            inner.append(f"{sql} AS t{place}")
            wrong = f"(x{place} IS NULL AND NOT {is_blank(f't{place}')})"
        if name == study.outcome:
            outer.append(f"{steps(f'x{place}', study.outcome_bounds)} AS q")
            flawed = wrong is not None
            outer += [f"{wrong} AS wrong"] if flawed else []
            continue
        outer.append(f"{bins(f'x{place}', _thresholds(name, layout), wrong)} AS k{place}")
        keys.append(Key(name, f"k{place}", Kind.INTEGER, None))
    text = f"SELECT {', '.join(outer)} FROM (SELECT {', '.join(inner)} FROM {ROWS}) AS cells"
    return Coding(text, tuple(keys), flawed)


def _label(sql: str, kind: Kind, native: bool) -> str:
    if kind in (Kind.EXACT, Kind.UNBOUNDED):
        return f"CAST({sql} AS VARCHAR)"
    return number(sql, kind, native) if kind is Kind.FLOAT else sql


def _thresholds(name: str, layout: Layout) -> tuple[float, ...]:
    if name not in layout.names:
        # Asked only whether it holds anything.
        return ()
    domain = layout.domains[layout.names.index(name)]
    return domain.thresholds() if isinstance(domain, Range) else ()


# A result of this many groups still fits beside anything else in memory.
MOST_GROUPS = 10**7
# Squares of steps reach 2^48, and a sum of them does not fit 64 bits: it is taken in two limbs.
LIMB_BITS = 24
_LIMB = 2**LIMB_BITS


@dataclass(frozen=True, slots=True, eq=False)
class RowGroups:
    """Groups of rows with equal keys.

    `cells` holds the key of each group as the engine gave it, `columns` the same as the study compares it. `held`
    counts the outcomes that are numbers, `wrong` those that are other text; the rest of `rows` are gaps. The sum of
    squares of the steps is high * 2^LIMB_BITS + low.
    """

    keys: tuple[Key, ...]
    cells: dict[str, Column]
    columns: dict[str, Column]
    rows: Integers
    held: Integers
    wrong: Integers
    total: Integers
    high: Integers
    low: Integers

    @property
    def cut_off(self) -> bool:
        """Whether there were more groups than were fetched."""
        return len(self.rows) > MOST_GROUPS


def grouped(engine: Engine, rows: Coding) -> RowGroups:
    """Return the groups of the coded rows."""
    aliases = [key.alias for key in rows.keys]
    parts = {
        "n": "COUNT(*)",
        "held": "COUNT(q)",
        "flaws": "COUNT(CASE WHEN wrong THEN 1 END)" if rows.flawed else "0",
        "total": "CAST(SUM(q) AS BIGINT)",
    }
    parts |= _squares(engine.native)
    found = engine.ask(
        f"SELECT {', '.join([*aliases, *(f'{sql} AS {name}' for name, sql in parts.items())])} "
        f"FROM ({rows.text}) AS coded GROUP BY {', '.join(aliases)} LIMIT {MOST_GROUPS + 1}",
        {key.alias: key.kind for key in rows.keys} | dict.fromkeys(parts, Kind.INTEGER),
    )
    cells = {key.name: found[key.alias] for key in rows.keys}
    columns = {key.name: as_decimals(cells[key.name]) if key.exact else cells[key.name] for key in rows.keys}
    return RowGroups(rows.keys, cells, columns, *(integers(found, name) for name in parts))


def integers(found: Mapping[str, Column], name: str) -> Integers:
    """Return a column of integers; NULL, the sum of nothing, is 0."""
    column = found[name]
    if isinstance(column, Numbers):
        return np.where(column.missing, 0, column.values).astype(np.int64)
    # A column without a single value may come back without a type.
    return np.zeros(len(column), dtype=np.int64)


def _squares(native: bool) -> dict[str, str]:
    # DuckDB sums in 128 bits, so the sum can be split after it was taken instead of before.
    forms = ("SUM(q * q) >> {}", "SUM(q * q) & {}") if native else ("SUM((q * q) >> {})", "SUM((q * q) & {})")
    return {
        "high": f"CAST({forms[0].format(LIMB_BITS)} AS BIGINT)",
        "low": f"CAST({forms[1].format(_LIMB - 1)} AS BIGINT)",
    }


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


def fit(groups: RowGroups, study: Study, layout: Layout) -> Fitted:
    """Return the groups as strata need them, or raise what attaching the same rows would raise."""
    missing_masks = {key.name: gaps(groups.columns[key.name]) for key in groups.keys}
    if groups.cut_off:
        raise _flooded(groups, missing_masks, study)
    survey = Survey(study)
    kept, weight = _apply_rules(groups, missing_masks, survey)
    columns = {
        key.name: (groups.columns[key.name].keep(kept), missing_masks[key.name][kept]) for key in groups.keys
    }
    treated = survey.arms.add(*columns.pop(study.treatment), weight[kept]) == 1
    if groups.wrong[kept].any():
        survey.note(Stage.VALUES, study.outcome)
    found = {name: _covariate(*column, name, survey, layout) for name, column in columns.items()}
    survey.verdict()
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


def _flooded(groups: RowGroups, missing_masks: dict[str, Mask], study: Study) -> CounterveilError:
    """Return why there are more groups than can be fetched: labels that are not declared, most likely."""
    for key in groups.keys:
        if key.labels is None:
            continue
        column = groups.columns[key.name]
        missing = missing_masks[key.name]
        other = column.keep((codes(column, missing, key.labels, None) < 0) & ~missing)
        domain = study.covariates.get(key.name)
        if isinstance(domain, Categories) and domain.other is not None:
            continue
        if key.name != study.treatment and len(other) > 0:
            return Survey(study).fault(Stage.VALUES, study.columns.index(key.name))
        # Without a declared control, one other label is what is expected.
        if len(np.unique(other.values if isinstance(other, Numbers) else other.codes)) > 1:
            return strange_treatment(key.name, study.treated, study.control)
    return refusal("CV-D080", most=MOST_GROUPS)


def places(codes: dict[str, Integers], layout: Layout, count: int) -> Integers:
    """Return the place in the layout of each of `count` groups, from the code of every covariate."""
    place = np.zeros(count, dtype=np.int64)
    for name, size in zip(layout.names, layout.sizes, strict=True):
        place = place * size + codes[name]
    return place


def _apply_rules(groups: RowGroups, missing_masks: dict[str, Mask], survey: Survey) -> tuple[Mask, Integers]:
    """Return which groups are kept, and how many of their rows; gaps without a rule are noted."""
    study = survey.study
    outcome_gaps = groups.rows - groups.held - groups.wrong
    for name, missing in (missing_masks | {study.outcome: outcome_gaps > 0}).items():
        if survey.rule(name) is None and missing.any():
            survey.note(Stage.MISSING, name)
    weight = groups.rows - outcome_gaps if isinstance(survey.rule(study.outcome), Drop) else groups.rows
    kept = weight > 0
    for name, missing in missing_masks.items():
        if isinstance(survey.rule(name), Drop):
            kept &= ~missing
    survey.rows += int(weight[kept].sum())
    return kept, weight


def _covariate(column: Column, missing: Mask, name: str, survey: Survey, layout: Layout) -> Integers:
    """Return the code of a covariate's label, or its bin."""
    if not isinstance(survey.study.covariates[name], Range):
        return survey.covariate(column, missing, name).astype(np.int64)
    filled = fill_bin(name, survey.study, layout)
    if not isinstance(column, Numbers):
        return np.full(len(column), filled, dtype=np.int64)
    found = np.where(missing, filled, column.values).astype(np.int64)
    if (found == WRONG).any():
        survey.note(Stage.VALUES, name)
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
    return int(encoding.to_steps(np.array([value]), study.outcome_bounds)[0])
