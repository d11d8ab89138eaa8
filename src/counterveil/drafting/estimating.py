"""Ranges and labels that no codebook has, released privately from the data and charged to a ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor, log10
from os import PathLike
from pathlib import Path
from typing import Any

from counterveil.accounting import Ledger, open_ledger
from counterveil.data import Drop, Fill, Range, Study, codebooks
from counterveil.data.codebooks import Codebook, Entry
from counterveil.data.domains import MissingRule, plain_number
from counterveil.data.study_documents import OPEN
from counterveil.drafting.draft import Draft, draft
from counterveil.errors import CounterveilError, refusal
from counterveil.estimators.ranges_and_labels import (
    epsilon_of_label,
    epsilon_of_range,
    range_of,
    rows_of_label,
    rows_of_range,
)
from counterveil.privacy import Budget, Number, Unit, show
from counterveil.results.question import uses_of
from counterveil.rows.undescribed_columns import undescribed_columns
from counterveil.session import BaseSession, BitSource, Gate, Kind, Plan, Request

METHOD = "ranges_and_labels"
PAGES = ("rows/histogram.proof.md", "mechanisms/stable_histogram.proof.md")
_OTHERS = ("other", "(other)", "((other))")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be estimated: the columns whose range and those whose labels are not known."""

    ranges: tuple[str, ...]
    labels: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """All of them, ranges first."""
        return self.ranges + self.labels

    def budget(self, epsilon: Number, delta: Number) -> Budget:
        """Return what is charged: a delta for labels alone."""
        return Budget(epsilon, delta if self.labels else 0)

    def plan(self, budget: Budget) -> Plan:
        """Return the plan: every column pays the same part of epsilon, every column of labels the same of delta."""
        kinds = dict.fromkeys(self.ranges, Kind.CELLS) | dict.fromkeys(self.labels, Kind.LABELS)
        share = Fraction(1, len(kinds))
        return Plan.split(budget, dict.fromkeys(kinds, share), "laplace", kinds)


def estimate_ranges(
    source: Any,
    codebook: str | PathLike[str] | Codebook | None = None,
    answers: Mapping[str, Any] | None = None,
    *,
    epsilon: Number,
    delta: Number = 0,
    columns: list[str] | None = None,
    ledger: str | Path | Ledger | None = None,
    dataset: str | None = None,
    request_id: str | None = None,
    noise: BitSource | None = None,
) -> Draft:
    """Draft a study file and release its open ranges and labels from the data, with differential privacy.

    Whole records are protected. Ranges are bounds of a public grid (1, 2 and 5 times powers of ten) that hold
    all but few rows. Labels are those that many rows have; the others count as one. The draft names what was
    released and what it cost.

    Parameters
    ----------
    source : object
        The rows: a DataFrame (pandas, Polars, PyArrow, DuckDB, Ibis, Spark), a mapping of names to arrays, or
        the path of a CSV or Parquet file.
    codebook : path-like or mapping of str to Entry, optional
        A codebook file, or entries by column. Default: none.
    answers : mapping, optional
        What people decided, by the names of a study's declarations; treatment, outcome and covariates must be
        known. Default: none.
    epsilon : number
        Privacy loss to spend on all columns together, above 0; divided equally.
    delta : number, default 0
        Needed where labels are estimated, far below one over the number of rows; divided equally among these
        columns.
    columns : list of str, optional
        Estimate these columns alone. Default: all that are open.
    ledger : Ledger or path-like, optional
        Charge an account of this ledger. Default: a ledger for this call alone.
    dataset : str, optional
        Account in the ledger. Default: the only one.
    request_id : str, optional
        Name of the request; asked again under it, the stored answer comes back, free of charge. Default: a
        new request.
    noise : SeededNoise, optional
        Reproducible noise, for tests alone: it protects nobody. Default: noise of the operating system.

    Returns
    -------
    Draft
        The draft with the released ranges and labels.

    Raises
    ------
    CounterveilError
        Before anything is spent: arguments (CV-P721 to CV-P724), codebook (CV-S126), data (CV-D), ledger
        (CV-L), budget (CV-B).

    Examples
    --------
    >>> import counterveil as cv
    >>> data = cv.datasets.simulated_trial(n=2000, effect=0.3, outcome="continuous")
    >>> answers = {"treatment": "treated", "outcome": "y", "assignment": "trial", "covariates": ["x"]}
    >>> made = cv.drafting.estimate_ranges(
    ...     data.frame, None, answers, epsilon=2, columns=["x"], noise=cv.SeededNoise(1)
    ... )
    >>> list(made.estimated)
    ['x']
    """
    made = draft(source, codebook, answers)
    wanted = _wanted(made, columns)
    budget = wanted.budget(epsilon, delta)
    plan = wanted.plan(budget)
    _check_delta(plan, wanted)
    with (
        _opened(ledger) as book,
        BaseSession(
            source,
            _technical(made, wanted, _rules(book, dataset)),
            budget=None if book is not None else budget,
            ledger=book,
            dataset=dataset,
            noise=noise,
            attach=False,
        ) as session,
    ):
        found = _answer(session, plan, wanted, request_id, book is not None)
        simulated = session.simulated
    return _finished(
        replace(made, simulated=simulated), lambda entries: draft(source, entries, answers), plan, found
    )


@dataclass(frozen=True, slots=True)
class PricePerColumn:
    """What each column gets before anything is spent, and how many rows that takes.

    Attributes:
        ranges, labels: the columns whose range and those whose labels would be released.
        epsilon, delta: what each column gets; a delta for labels alone.
        range_rows, label_rows: rows at each end of a range, and rows of a label, that are found with probability 0.95.
    """

    ranges: tuple[str, ...]
    labels: tuple[str, ...]
    epsilon: Fraction
    delta: Fraction
    range_rows: int
    label_rows: int


def price_per_column(
    made: Draft, *, epsilon: Number, delta: Number = 0, columns: list[str] | None = None
) -> PricePerColumn:
    """Return what each open column of a draft would get; no row is read."""
    wanted = _wanted(made, columns)
    return _price(wanted, wanted.plan(wanted.budget(epsilon, delta)))


def _price(wanted: Wanted, plan: Plan) -> PricePerColumn:
    _check_delta(plan, wanted)
    kind = Kind.CELLS if wanted.ranges else Kind.LABELS
    each, delta = plan.amount(wanted.columns[0], kind), plan.label_delta if wanted.labels else Fraction(0)
    label_rows = rows_of_label(each, delta) if wanted.labels else 0
    return PricePerColumn(wanted.ranges, wanted.labels, each, delta, rows_of_range(each), label_rows)


def _check_found(wanted: Wanted, plan: Plan, rows: int) -> None:
    """Raise CV-P832 where two ends of a range, or two labels, cannot both be found; the number of rows is public."""
    price = _price(wanted, plan)
    least = max(
        epsilon_of_range(rows) if wanted.ranges else 0.0,
        epsilon_of_label(rows, price.delta) if wanted.labels else 0.0,
    )
    if price.epsilon < Fraction(least):
        count, most = len(wanted.columns), int(plan.budget.epsilon / Fraction(least))
        fewer = f", or estimate at most {most} of them" if most else ""
        raise refusal(
            "CV-P832",
            count=count,
            rows=f"{rows:,}",
            each=f"{float(price.epsilon):.2g}",
            least=_rounded_up(least),
            total=_rounded_up(least * count),
            fewer=fewer,
        )


def _rounded_up(number: float) -> str:
    """Return a number with two digits that is not smaller."""
    step = 10.0 ** (floor(log10(number)) - 1)
    return f"{ceil(number / step) * step:.2g}"


@contextmanager
def _opened(place: str | Path | Ledger | None) -> Iterator[Ledger | None]:
    if place is None or isinstance(place, Ledger):
        yield place
        return
    with open_ledger(place) as book:
        yield book


def _rules(book: Ledger | None, dataset: str | None) -> Mapping[str, str]:
    """Return the account's rules for missing values: here they fall into a cell of their own, whatever the rule."""
    accounts = [] if book is None else [each for each in book.datasets() if dataset in (None, each.dataset)]
    access_policy = accounts[0].access_policy if len(accounts) == 1 else None
    return {} if access_policy is None else access_policy.missing


def _wanted(made: Draft, columns: list[str] | None) -> Wanted:
    treatment, outcomes = made.role("treatment"), made.all_of("outcome")
    document = made.document
    covariates = document.get("covariates", {})
    if treatment is None or not outcomes or covariates == OPEN:
        raise _not_estimated("a draft with a treatment, an outcome and covariates", "one of them is open")
    ranges, labels = [], []
    for name, told in covariates.items():
        if told == {"range": OPEN}:
            ranges.append(name)
        elif told == OPEN or (isinstance(told, Mapping) and OPEN in told.values()):
            labels.append(name)
    declared = document.get("outcome", {})
    ends = declared.get("ranges", {outcomes[0].name: declared.get("range")})
    ranges += [name for name, told in ends.items() if told == OPEN]
    labels += [treatment.name] if document.get("treatment", {}).get("treated") == OPEN else []
    if columns is not None:
        closed = [name for name in columns if name not in (*ranges, *labels)]
        if closed:
            raise _not_estimated(f"columns that are open: {', '.join((*ranges, *labels))}", repr(closed[0]))
        ranges = [name for name in ranges if name in columns]
        labels = [name for name in labels if name in columns]
    if not ranges and not labels:
        raise _not_estimated("columns whose range or labels are open", "none")
    return Wanted(tuple(ranges), tuple(labels))


def _check_delta(plan: Plan, wanted: Wanted) -> None:
    """Raise CV-P724 before anything is charged where the delta is none, or too large beside epsilon."""
    for name in wanted.labels:
        amount, delta = plan.amount(name, Kind.LABELS), plan.label_delta
        if not 0 < delta <= min(amount / 4, Fraction(1, 4)):
            raise refusal("CV-P724", amount=show(amount), delta=show(delta), name=name)


def _technical(made: Draft, wanted: Wanted, rules: Mapping[str, str]) -> Study:
    """Return a study of the columns that are estimated; its bounds are not used."""
    treatment, person = made.role("treatment"), made.role("person")
    assert treatment is not None
    outcomes = {each.name: (0, 1) for each in made.all_of("outcome")}
    roles = (treatment.name, *outcomes)
    covariates = {name: Range(0, 1) for name in wanted.columns if name not in roles}
    kinds: dict[str, MissingRule] = {
        name: Drop() if rule == "drop" else Fill(1)
        for name, rule in rules.items()
        if name in (*roles, *covariates)
    }
    person_id = None if person is None else person.name
    return Study(treatment.name, outcomes, covariates=covariates, people=person_id, missing=kinds)


def _answer(
    session: BaseSession, plan: Plan, wanted: Wanted, request_id: str | None, lasting: bool
) -> dict[str, Any]:
    """Return the released counts and labels of all columns; what cannot be read is refused before the charge."""
    study = session.study
    uses = uses_of(study, Unit.RECORD, "draft", METHOD)
    account = session.account()
    if lasting and account.access_policy is None and not account.published:
        raise refusal("CV-L081", dataset=session.dataset, columns=", ".join(map(repr, wanted.columns)))
    session.admit(uses)
    columns = undescribed_columns(session, wanted.columns)
    _check_found(wanted, plan, columns.rows)
    description: dict[str, object] = {
        "question": "draft",
        "ranges": list(wanted.ranges),
        "labels": list(wanted.labels),
        "epsilon": str(plan.budget.epsilon),
        "delta": str(plan.budget.delta),
        "person": None if study.person is None else study.person.column,
    }

    def compute(gate: Gate) -> dict[str, object]:
        return {
            "ranges": {name: columns.release_range(gate, name) for name in wanted.ranges},
            "labels": {name: columns.release_labels(gate, name) for name in wanted.labels},
        }

    return session.run(Request(plan, description, uses, request_id), compute)


def _finished(
    made: Draft, again: Callable[[dict[str, Entry]], Draft], plan: Plan, found: Mapping[str, Any]
) -> Draft:
    """Return the draft with what was released; a column of which nothing was found stays open."""
    entries = {each.name: each.entry for each in made.columns}
    estimated = dict(made.estimated)
    for name, counts in found["ranges"].items():
        amount = plan.amount(name, Kind.CELLS)
        bounds = range_of(counts, amount)
        if bounds is not None:
            low, high = map(plain_number, bounds)
            entries[name] = replace(entries[name], kind=codebooks.RANGE, low=low, high=high)
            estimated[name] = f"range: epsilon {show(amount)}"
    for name, pairs in found["labels"].items():
        labels = [label for label, _ in pairs]
        cost = f"labels: epsilon {show(plan.amount(name, Kind.LABELS))}, delta {show(plan.label_delta)}"
        other = next(word for word in _OTHERS if word not in labels)
        placed = entries[name]
        if labels and made.places[name] != "covariate":
            entries[name] = replace(placed, labels=tuple((label, "") for label in labels))
            estimated[name] = cost
        elif labels:
            said = tuple((label, "") for label in [*labels, other])
            entries[name] = replace(placed, kind=codebooks.CATEGORIES, labels=said, other=other)
            estimated[name] = cost
    return replace(again(entries), origin=made.origin, estimated=estimated, simulated=made.simulated)


def _not_estimated(expected: str, got: str) -> CounterveilError:
    return refusal("CV-P723", expected=expected, got=got)
