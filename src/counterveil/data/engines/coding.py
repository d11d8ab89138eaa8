"""Rows as an engine sees them: labels as they stand, bins of cut ranges, whole steps of the outcome."""

from __future__ import annotations

from dataclasses import dataclass

from counterveil.data.domains import Range
from counterveil.data.engines.expressions import bins, is_wrong, number, steps
from counterveil.data.engines.opening import ROWS, Engine
from counterveil.data.labels import LabelIndex
from counterveil.data.layout import Layout
from counterveil.data.missing import Drop
from counterveil.data.sources.kinds import Kind
from counterveil.data.study import Study
from counterveil.data.survey import label_index
from counterveil.data.wrong_data import text_in_a_database

# Where the order is the engine's own: the number of the row, counted while it streams by.
ROW_NUMBER = "row_number() OVER ()"


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
    """A query with a row for every row: the keys, the steps `q`, perhaps the order `ord`.

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


def coding(engine: Engine, study: Study, layout: Layout, order: str | None = None) -> Coding:
    """Return the query that codes every row; `order` is the SQL that orders them, where it is needed."""
    inner: list[str] = [] if order is None else [f"{order} AS ord"]
    outer: list[str] = [] if order is None else ["ord"]
    keys: list[Key] = []
    flawed = False
    for place, name in enumerate(columns_read(study, layout)):
        sql, kind = engine.columns[name]
        labels = label_index(name, study)
        if labels is not None:
            key = _label_key(name, f"k{place}", kind, labels)
            inner.append(f"{_label(sql, kind, engine.native)} AS {key.alias}")
            outer.append(key.alias)
            keys.append(key)
            continue
        if kind is Kind.TEXT and not engine.native:
            raise text_in_a_database(name)
        inner.append(f"{number(sql, kind, engine.native)} AS x{place}")
        wrong = None
        if kind is Kind.TEXT:
            inner.append(f"{sql} AS t{place}")
            wrong = is_wrong(f"t{place}", f"x{place}")
        if name == study.outcome:
            outer.append(f"{steps(f'x{place}', study.outcome_bounds)} AS q")
            flawed = wrong is not None
            outer += [f"{wrong} AS wrong"] if flawed else []
            continue
        outer.append(f"{bins(f'x{place}', _thresholds(name, layout), wrong)} AS k{place}")
        keys.append(Key(name, f"k{place}", Kind.INTEGER, None))
    text = f"SELECT {', '.join(outer)} FROM (SELECT {', '.join(inner)} FROM {ROWS}) AS cells"
    return Coding(text, tuple(keys), flawed)


def _label_key(name: str, alias: str, kind: Kind, labels: LabelIndex) -> Key:
    exact = kind in (Kind.EXACT, Kind.UNBOUNDED)
    return Key(name, alias, Kind.TEXT if exact else kind, labels, exact)


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
