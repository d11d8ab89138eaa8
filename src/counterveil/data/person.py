"""Whose a row is: several rows a person, and clusters of people whose outcomes depend on each other.

Where people have several rows, or whole clusters are protected, the unit of the guarantee is a person or a cluster with
all its rows; `people.py` makes one row of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from counterveil.data.domains import is_name, listed
from counterveil.errors import refusal, shown
from counterveil.privacy import Unit

# Rules that need to know which row comes first.
_ORDERED = ("first", "last")


@dataclass(frozen=True, slots=True)
class Role:
    """The rules by which rows may become one value of a column, and the one that holds unless another is named.

    Without such a one the column does not vary within a person. People of a cluster differ: the mean of their numbers
    stands for it.
    """

    allowed: tuple[str, ...]
    usual: str | None = None

    def rule(self, order: str | None, whole_cluster: bool) -> str:
        """Return the rule of a column for which a study names none."""
        if whole_cluster and "mean" in self.allowed:
            return self.usual or "mean"
        return self.usual or ("constant" if order is None else "first")


_OUTCOME = ("mean", "sum", "max", "min", "any", "first", "last", "constant")
TREATMENT = Role(("constant", "first", "last", "ever"), "constant")
ONE_OF_ARMS = Role(TREATMENT.allowed[:-1], "constant")
OUTCOME, EARLIER = Role(_OUTCOME, "mean"), Role(_OUTCOME)
# A ratio is one of sums. Of a person's follow-up the end counts, and whether the event happened in it.
PART_OF_RATIO, FOLLOW_UP = Role(_OUTCOME, "sum"), Role(_OUTCOME, "max")
NUMBER, LABELS = (
    Role(("constant", "first", "last", "mean", "max", "min")),
    Role(("constant", "first", "last")),
)


@dataclass(frozen=True, slots=True)
class Person:
    """Which rows belong to one person, and by which rule each column of theirs becomes one value.

    Attributes:
        column: the column that identifies a person.
        rules: the rule of every column of the study, by its name.
        order: the column that puts a person's rows in order; None where no rule needs one.
        max_rows_per_person: only a person's first rows count, so many of them; None for all.
        whole_cluster: whether it is a cluster of people whose rows become one.
    """

    column: str
    rules: Mapping[str, str]
    order: str | None = None
    max_rows_per_person: int | None = None
    whole_cluster: bool = False

    @classmethod
    def declared(
        cls,
        column: object,
        rules: object,
        order: object,
        max_rows_per_person: object,
        roles: Mapping[str, Role],
        whole_cluster: bool = False,
    ) -> Person | None:
        """Return the declaration, or None where no column identifies a person; raises CV-S016 for one that is invalid.

        `roles` are those of a study's columns. With `whole_cluster` the column names clusters, whose rows become one.
        """
        if column is None:
            if (rules, order, max_rows_per_person) != (None, None, None):
                raise refusal(
                    "CV-S016",
                    expected="person= beside per_person=, order= and max_rows_per_person=",
                    got="no person",
                    fix=_FIX,
                )
            return None
        for name in (column, order):
            if name is not None and (not is_name(name) or name in roles):
                raise refusal(
                    "CV-S016", expected="the name of a column without another role", got=shown(name), fix=_FIX
                )
        if column == order:
            raise refusal(
                "CV-S016", expected="two different columns as person and order", got=shown(order), fix=_FIX
            )
        if max_rows_per_person is not None:
            if (
                not isinstance(max_rows_per_person, int)
                or isinstance(max_rows_per_person, bool)
                or max_rows_per_person < 1
            ):
                raise refusal(
                    "CV-S016",
                    expected="max_rows_per_person=: a whole number from 1 on",
                    got=shown(max_rows_per_person),
                    fix=_FIX,
                )
            if order is None:
                fix = "name the column that says which rows come first"
                raise refusal(
                    "CV-S016", expected="an order beside max_rows_per_person=", got="no order", fix=fix
                )
        assert isinstance(column, str)
        assert order is None or isinstance(order, str)
        found = _rules(roles, rules, order, whole_cluster)
        return cls(column, found, order, max_rows_per_person, whole_cluster)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read besides those of the study."""
        return (self.column,) if self.order is None else (self.column, self.order)

    def to_dict(self, roles: Mapping[str, Role], time: str | None) -> dict[str, Any]:
        """Return the declaration as it stands in a study file; rules that hold by default are left out.

        `time` is the column of a study's periods, which orders rows by itself.
        """
        found: dict[str, Any] = {"column": self.column}
        if self.order is not None and time is None:
            found["order"] = self.order
        if self.max_rows_per_person is not None:
            found["max_rows_per_person"] = self.max_rows_per_person
        rules = {
            name: rule
            for name, rule in self.rules.items()
            if rule != roles[name].rule(self.order, self.whole_cluster)
        }
        return found | ({"rules": rules} if rules else {})

    def public_facts(self, unit: Unit) -> list[str]:
        """Return what is public of people, or clusters, whose rows become one."""
        several, one = ("clusters", "cluster") if self.whole_cluster else ("people", "person")
        by_rule: dict[str, list[str]] = {}
        for name, rule in self.rules.items():
            by_rule.setdefault(rule, []).append(repr(name))
        said = "; ".join(f"{rule} of {listed(names)}" for rule, names in by_rule.items())
        said += "" if self.order is None else f", in the order of {self.order!r}"
        said += (
            ""
            if self.max_rows_per_person is None
            else f", over the first {self.max_rows_per_person} rows of a {one}"
        )
        facts = [
            f"the number of {several}, by {self.column!r}, and the order of what identifies them",
            f"how the rows of a {one} become one: {said}",
        ]
        return [*facts, f"how many rows each {one} has, and their order"] if unit.covariates_public else facts


_FIX = 'for example Study(..., person="patient_id", per_person={"cost": "sum"}, order="visit")'


def _rules(
    roles: Mapping[str, Role], given: object, order: str | None, whole_cluster: bool
) -> dict[str, str]:
    if given is not None and not isinstance(given, Mapping):
        name = "per_cluster" if whole_cluster else "per_person"
        raise refusal("CV-S016", expected=f"{name}=: a rule for each column", got=shown(given), fix=_FIX)
    rules = {name: role.rule(order, whole_cluster) for name, role in roles.items()}
    for name, rule in (given or {}).items():
        allowed = roles[name].allowed if name in roles else ()
        if rule not in allowed:
            what = f"{name!r}: one of {', '.join(allowed)}" if allowed else "rules for columns of the study"
            raise refusal("CV-S016", expected=what, got=f"{shown(name)}: {shown(rule)}", fix=_FIX)
        if rule in _ORDERED and order is None:
            fix = "name the column that puts a person's rows in order: order=..."
            raise refusal(
                "CV-S016",
                expected="an order beside 'first' and 'last'",
                got=f"{shown(name)}: {shown(rule)}",
                fix=fix,
            )
        rules[name] = rule
    return rules


@dataclass(frozen=True, slots=True)
class Cluster:
    """Which rows belong to one cluster (a school, a clinic, a village), and what is protected.

    Attributes:
        column: the column that names the cluster of a row.
        whole: whether a cluster with all its rows is protected, and reduced to one row; else each row, or person, is.
        assigned: whether whole clusters were assigned to the arms, and which was assigned to which is public.
    """

    column: str
    whole: bool = False
    assigned: bool = False

    @classmethod
    def declared(
        cls,
        column: object,
        whole: object,
        assigned: object,
        rules: object,
        person: object,
        columns: tuple[str, ...],
    ) -> Cluster | None:
        """Return the declaration, or None where no column names clusters; raises CV-S025 for one that is invalid."""
        if column is None:
            if rules is not None or whole is not False or assigned is not False:
                beside = "cluster= beside protects_cluster=, assigned_by_cluster= and per_cluster="
                raise refusal("CV-S025", expected=beside, got="no cluster")
            return None
        if not is_name(column) or column in (*columns, person):
            raise refusal("CV-S025", expected="the name of a column without another role", got=shown(column))
        for name, flag in (("protects_cluster", whole), ("assigned_by_cluster", assigned)):
            if not isinstance(flag, bool):
                raise refusal("CV-S025", expected=f"{name}=True or False", got=shown(flag))
        if whole and person is not None:
            alone = "protects_cluster=True without person=: all rows of a cluster become one"
            raise refusal("CV-S025", expected=alone, got=f"person={shown(person)}")
        if not whole and rules is not None:
            beside = "per_cluster= with protects_cluster=True, where the rows of a cluster become one"
            raise refusal("CV-S025", expected=beside, got=shown(rules))
        return cls(column, bool(whole), bool(assigned))

    def to_dict(self) -> dict[str, Any]:
        """Return the declaration as it stands in a study file, without how rows of a whole cluster become one."""
        flags = {"protected": self.whole, "assigned": self.assigned}
        return {"column": self.column} | {name: True for name, flag in flags.items() if flag}

    def public_fact(self, unit: Unit) -> str:
        """Return what is public about clusters of protected people."""
        if unit.covariates_public:
            return f"which cluster everyone is in, by {self.column!r}"
        arms = ", and which arm each of them was assigned to" if self.assigned else ""
        return (
            f"the clusters that there are, by {self.column!r}{arms}: who is in which is protected, and the guarantee "
            "compares data sets with the same clusters"
        )


# Words that end the names of columns which identify people; names are public, and no row is looked at.
_IDENTIFIERS = re.compile(
    r"(?:^|[_.\- ])(?:id|uid|uuid|guid|mrn|ssn|nhs|pid|patient|person|subject|participant|customer|user|worker|student"
    r"|household|member|account|visitor)(?:[_.\- ]?(?:id|no|nr|num|number|key|code))?$"
    r"|(?:^|[_.\- ])(?:pt|pat|subj|study|case|rec|record|hosp|emp)id$",
    re.IGNORECASE,
)


def identifiers(names: Iterable[str]) -> list[str]:
    """Return the names of columns that look as if they identified people."""
    # In camel case words are told apart by their capitals: patientId.
    return [name for name in names if _IDENTIFIERS.search(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name))]
