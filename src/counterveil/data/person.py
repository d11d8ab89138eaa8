"""Several rows a person: the declaration of how they become one.

The unit of the guarantee is then a person with all their rows; `reduction.py` makes one row of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from counterveil.data.domains import Range
from counterveil.errors import Refusal, shown

if TYPE_CHECKING:
    from counterveil.data.study import Study

# Rules that need to know which row comes first.
_ORDERED = ("first", "last")
_OUTCOME = ("mean", "sum", "max", "min", "any", "first", "last", "constant")
_TREATMENT = ("constant", "first", "last", "ever")
_NUMBERS = ("constant", "first", "last", "mean", "max", "min")
_LABELS = ("constant", "first", "last")


@dataclass(frozen=True, slots=True)
class Person:
    """Which rows belong to one person, and by which rule each column of theirs becomes one value.

    Attributes:
        column: the column that identifies a person.
        rules: the rule of every column of the study, by its name.
        order: the column that puts a person's rows in order; None where no rule needs one.
        most_rows: only a person's first rows count, so many of them; None for all.
        whole_cluster: whether it is a cluster of people whose rows become one.
    """

    column: str
    rules: Mapping[str, str]
    order: str | None = None
    most_rows: int | None = None
    whole_cluster: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read besides those of the study."""
        return (self.column,) if self.order is None else (self.column, self.order)

    def to_dict(self, study: Study) -> dict[str, Any]:
        """Return the declaration as it stands in a study file; rules that hold by default are left out."""
        found: dict[str, Any] = {"column": self.column}
        # Periods order rows by themselves.
        if self.order is not None and (study.before is None or study.before.time is None):
            found["order"] = self.order
        if self.most_rows is not None:
            found["most_rows"] = self.most_rows
        usual = _defaults(study, self.order, self.whole_cluster)
        rules = {name: rule for name, rule in self.rules.items() if rule != usual[name]}
        return found | ({"rules": rules} if rules else {})


def declared(
    study: Study, column: object, rules: object, order: object, most_rows: object, whole_cluster: bool = False
) -> Person | None:
    """Return the declaration, or None where no column identifies a person; raises CV-S016 for one that is invalid.

    With `whole_cluster` the column names clusters, whose rows become one.
    """
    if column is None:
        if (rules, order, most_rows) != (None, None, None):
            raise _invalid("person= beside per_person=, order= and most_rows=", "no person", _FIX)
        return None
    for name in (column, order):
        wrong = not isinstance(name, str) or not name.strip() or name in study.columns
        if wrong and name is not None:
            raise _invalid("the name of a column without another role", shown(name), _FIX)
    if column == order:
        raise _invalid("two different columns as person and order", shown(order), _FIX)
    if most_rows is not None and (
        not isinstance(most_rows, int) or isinstance(most_rows, bool) or most_rows < 1
    ):
        raise _invalid("most_rows=: a whole number from 1 on", shown(most_rows), _FIX)
    if most_rows is not None and order is None:
        raise _invalid(
            "an order beside most_rows=", "no order", "name the column that says which rows come first"
        )
    assert isinstance(column, str)
    assert order is None or isinstance(order, str)
    return Person(column, _rules(study, rules, order, whole_cluster), order, most_rows, whole_cluster)


_FIX = 'for example Study(..., person="patient_id", per_person={{"cost": "sum"}}, order="visit")'
_invalid = Refusal(
    "CV-S016",
    "the declaration of people with several rows is invalid",
    expected="{expected}",
    got="{got}",
    fix="{fix}",
)


def _rules(study: Study, given: object, order: str | None, whole_cluster: bool) -> dict[str, str]:
    if given is not None and not isinstance(given, Mapping):
        name = "per_cluster" if whole_cluster else "per_person"
        raise _invalid(f"{name}=: a rule for each column", shown(given), _FIX)
    rules = _defaults(study, order, whole_cluster)
    for name, rule in (given or {}).items():
        allowed = _allowed(study, name) if name in rules else ()
        if rule not in allowed:
            what = f"{name!r}: one of {', '.join(allowed)}" if allowed else "rules for columns of the study"
            raise _invalid(what, f"{shown(name)}: {shown(rule)}", _FIX)
        if rule in _ORDERED and order is None:
            fix = "name the column that puts a person's rows in order: order=..."
            raise _invalid("an order beside 'first' and 'last'", f"{shown(name)}: {shown(rule)}", fix)
        rules[name] = rule
    return rules


def _defaults(study: Study, order: str | None, whole_cluster: bool) -> dict[str, str]:
    """Return the rules of a study that names none: the mean outcome; treatment and covariates do not vary.

    What was measured before does not vary either. People of a cluster differ: the mean of their numbers stands for it.
    """
    others = () if study.several is None else study.several.names
    before = [name for name in study.outcomes if name not in (study.outcome, *others)]
    usual = {study.treatment: "constant", study.outcome: "mean"} | dict.fromkeys(others, "mean")
    usual |= dict.fromkeys((*before, *study.covariates), "constant" if order is None else "first")
    if whole_cluster:
        numbers = (name for name, domain in study.covariates.items() if isinstance(domain, Range))
        usual |= dict.fromkeys((*before, *numbers), "mean")
    if study.event is not None:
        # The end of a person's follow-up, and whether the event happened in it.
        return usual | dict.fromkeys(study.outcomes, "max")
    # A ratio is one of sums.
    return usual if study.per is None else usual | dict.fromkeys(study.outcomes, "sum")


def _allowed(study: Study, name: str) -> tuple[str, ...]:
    if name in study.outcomes:
        return _OUTCOME
    if name == study.treatment:
        return _TREATMENT if study.arms is None else _TREATMENT[:-1]
    return _NUMBERS if isinstance(study.covariates[name], Range) else _LABELS


# Words that end the names of columns which identify people; names are public, and no row is looked at.
_IDENTIFIERS = re.compile(
    r"(?:^|[_.\- ])(?:id|uid|uuid|guid|mrn|ssn|nhs|pid|patient|person|subject|participant|customer|user|worker|student"
    r"|household|member|account|visitor)(?:[_.\- ]?(?:id|no|nr|num|number|key|code))?$",
    re.IGNORECASE,
)


def identifiers(names: Iterable[str]) -> list[str]:
    """Return the names of columns that look as if they identified people."""
    # In camel case words are told apart by their capitals: patientId.
    return [name for name in names if _IDENTIFIERS.search(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name))]
