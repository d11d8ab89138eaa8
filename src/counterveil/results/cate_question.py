"""What an analyst asks about effects that differ between people, checked before data or budget are touched."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.accounting import Uses
from counterveil.data import Range, Study
from counterveil.data.encoding import clamp, domain_codes, gaps, numbers
from counterveil.data.features import require_covariates
from counterveil.data.labels import Fill, Label, LabelIndex
from counterveil.data.sources import read
from counterveil.errors import CounterveilError, refusal
from counterveil.privacy import Number, exact
from counterveil.results.arms import refuse_several_arms
from counterveil.results.question import Question, refuse_extremes
from counterveil.session import Kind, Plan, Request

# People to ask about, read from any table of covariates: public numbers, inside the declared bounds.


Floats = NDArray[np.float64]
Query = dict[str, float | Label]

# Characters of one answer beside its query, at most, and those of all that one request may have.
ANSWER_LENGTH, LONGEST_ANSWERS = 100, 16 * 2**20


@dataclass(frozen=True, slots=True, eq=False)
class Queries:
    """Public points at which effects are asked for.

    `columns` maps every covariate to float64 numbers inside its bounds, or to the codes of its labels;
    `rows` are the same points as people write them.
    """

    columns: Mapping[str, Floats]
    rows: tuple[Query, ...]

    def __len__(self) -> int:
        return len(self.rows)


def refuse_long_answers(queries: Queries) -> None:
    """Raise CV-P643 where the answers would be longer than a ledger keeps; a released function keeps no queries."""
    length = len(json.dumps(queries.rows, default=str)) + ANSWER_LENGTH * len(queries.rows)
    if length > LONGEST_ANSWERS:
        raise refusal(
            "CV-P643",
            longest_answers=LONGEST_ANSWERS // 2**20,
            rows=len(queries.rows),
            length=length // 2**20,
        )


def read_queries(source: Any, study: Study) -> Queries:
    """Return the points of a table of covariates, clamped to the study's bounds."""
    columns = read_columns(source, study)
    shown = {name: _as_written(values, name, study) for name, values in columns.items()}
    rows = tuple(dict(zip(shown, row, strict=True)) for row in zip(*shown.values(), strict=True))
    return Queries(columns, rows)


def reference_queries(study: Study, most: int | None = None) -> tuple[tuple[str, ...], Queries]:
    """Return named points: the middle of every range and the first of all labels, then each covariate moved alone."""
    middle: Query = {
        name: sum(domain.floats()) / 2 if isinstance(domain, Range) else domain.labels[0]
        for name, domain in study.covariates.items()
    }
    names, rows = ["centre"], [middle]
    for name, domain in study.covariates.items():
        for value in domain.floats() if isinstance(domain, Range) else domain.labels[1:]:
            names.append(f"{name} = {value:g}" if isinstance(value, float) else f"{name} = {value}")
            rows.append(middle | {name: value})
    return tuple(names[:most]), read_queries(rows[:most], study)


def read_columns(source: Any, study: Study) -> dict[str, Floats]:
    """Return the study's covariates from a frame, a mapping of columns, a list of rows or an (n, p) array.

    Numbers are clamped to their bounds, labels become codes. A matrix has the covariates in the study's order.
    """
    names = tuple(study.covariates)
    if isinstance(source, np.ndarray) and source.ndim == 2 and source.shape[1] == len(names):
        source = dict(zip(names, source.T, strict=True))
    elif isinstance(source, Sequence) and not isinstance(source, str):
        source = {name: [_cell(row, name) for row in source] for name in names}
    elif isinstance(source, Mapping):
        quick = _numbers_only(source, study)
        if quick is not None:
            return quick
        # One person may be written as a mapping of single values.
        source = {
            name: [value] if isinstance(value, str) or not hasattr(value, "__len__") else value
            for name, value in source.items()
        }
    numeric = frozenset(name for name, domain in study.covariates.items() if isinstance(domain, Range))
    found = read(source, names, numeric)
    return {name: _column(found[name], name, study) for name in names}


def _numbers_only(source: Mapping[Any, Any], study: Study) -> dict[str, Floats] | None:
    """Return the columns where all are plain arrays of finite numbers: the common case, and the fast one."""
    found: dict[str, Floats] = {}
    rows = -1
    for name, domain in study.covariates.items():
        values = source.get(name)
        if not isinstance(domain, Range) or not isinstance(values, np.ndarray) or values.ndim != 1:
            return None
        if values.dtype.kind not in "fiu" or rows not in (-1, len(values)):
            return None
        doubles = values.astype(np.float64)
        if np.isnan(doubles).any():
            return None
        found[name], rows = clamp(doubles, domain), len(values)
    return found or None


def _cell(row: Any, name: str) -> Any:
    if isinstance(row, Mapping) and name in row:
        return row[name]
    raise refusal("CV-P522", name=name, kind=type(row).__name__)


def _column(column: Any, name: str, study: Study) -> Floats:
    domain, rule = study.covariates[name], study.missing.get(name)
    index = None if isinstance(domain, Range) else LabelIndex(domain.labels)
    hole = gaps(column, index)
    if hole.any() and not isinstance(rule, Fill):
        raise _not_known(name, "a value in every row", "rows without one")
    if isinstance(domain, Range):
        fill = float(exact(rule.value, "Fill")) if isinstance(rule, Fill) else 0.0
        return clamp(numbers(column, hole, fill, name), domain)
    found = domain_codes(column, hole, domain, rule)
    if (found < 0).any():
        raise _not_known(name, f"one of {list(domain.labels)!r}", "another label")
    return found.astype(np.float64)


def _not_known(name: str, expected: str, got: str) -> CounterveilError:
    return refusal("CV-P524", name=name, expected=expected, got=got)


def _as_written(values: Floats, name: str, study: Study) -> list[float | Label]:
    domain = study.covariates[name]
    if isinstance(domain, Range):
        return [float(value) for value in values]
    return [domain.labels[int(code)] for code in values]


# The delta that is taken where none is given: a tenth of one over the number of rows, and never more than this.
LARGEST_DELTA = Fraction(1, 10**6)


@dataclass(frozen=True, slots=True)
class CateQuestion(Question):
    """The public arguments of one request for effects; `queries` is None where a function is asked for."""

    queries: Queries | None = None

    def uses(self, study: Study, question: str = "cate") -> Uses:
        """Return what the ledger compares with the account's charter; an average effect is asked for as `cate`, too."""
        return Question.uses(self, study, question)

    def request(self, plan: Plan, study: Study, *, question: str = "cate", **said: object) -> Request:
        """Return the request that the ledger sees: the plan and a public description."""
        asked = None if self.queries is None else _digest(self.queries)
        return Question.request(self, plan, study, question=question, queries=asked, **said)


def default_delta(rows: int) -> Fraction:
    """Return the delta of a request that names none, from the public number of rows."""
    return min(LARGEST_DELTA, Fraction(1, 10 * rows))


def ask_cate(
    study: Study,
    *,
    method: str,
    protects: str,
    epsilon: Number,
    delta: Number | None,
    level: float,
    queries: Any = None,
    rows: int | None = None,
    **rest: Any,
) -> CateQuestion:
    """Return the checked question; `rows` is None while the data have not been looked at.

    Without a delta, the default for that many rows is taken.
    """
    refuse_several_arms(study)
    require_covariates(study, "cate")
    chosen = delta if delta is not None else LARGEST_DELTA if rows is None else default_delta(rows)
    question = CateQuestion.ask(
        method=method,
        protects=protects,
        epsilon=epsilon,
        delta=chosen,
        estimand="ATE",
        level=level,
        mechanism=None,
        **rest,
    )
    assert isinstance(question, CateQuestion)
    refuse_extremes(study, question.budget)
    return question if queries is None else replace(question, queries=read_queries(queries, study))


def require_gaussian(question: Question, method: str) -> None:
    """Raise CV-P521 where a method whose noise is Gaussian was asked for a pure guarantee."""
    if question.budget.pure:
        raise refusal("CV-P521", method=method, budget=question.budget)


def vector_plan(question: Question, shares: Mapping[str, Fraction]) -> Plan:
    """Return the plan whose releases are all vectors of known joint sensitivity."""
    return Plan.split(question.budget, shares, question.mechanism, dict.fromkeys(shares, Kind.VECTOR))


def _digest(queries: Queries) -> str:
    text = json.dumps(queries.rows, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()
