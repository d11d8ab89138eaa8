"""Whose a row is: repeated rows of a person, and clusters of people whose outcomes depend on each other.

Where people have several rows, or whole clusters are protected, the unit of the guarantee is a person or a cluster
with all its rows; `people.py` makes one row of them. Proof: `person.proof.md`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from counterveil.data.domains import is_name, listed
from counterveil.data.unknown_arguments import known_fields
from counterveil.errors import CounterveilError, refusal, shown
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


@known_fields
@dataclass(frozen=True, slots=True)
class People:
    """People with several rows: the column that identifies them, and how their rows become one.

    The unit of protection is then a person with all their rows.

    Parameters
    ----------
    column : str
        Column that identifies a person: the same value in all their rows, never missing.
    rules : mapping of str to str, optional
        By column of the study, the rule by which a person's values become one. For outcomes "mean" (the
        default), "sum", "max", "min", "any", "first", "last" or "constant"; for both columns of a ratio "sum"
        is the default. For the treatment "constant" (the default), "first", "last", or, in a study of two
        arms, "ever". For numeric covariates "constant" (the default; "first" with `order`), "first", "last",
        "mean", "max" or "min"; for labels "constant" (the default; "first" with `order`), "first" or "last".
    order : str, optional
        Column that puts a person's rows in order; needed for "first", "last" and `max_rows`. The column of
        the periods of a `cv.Change` orders rows by itself.
    max_rows : int, optional
        Only a person's first rows count, so many of them: a whole number from 1 on. All rows if omitted.

    Attributes
    ----------
    column, rules, order, max_rows
        As declared.

    Raises
    ------
    CounterveilError
        A declaration that is invalid (CV-S016). Whether rules suit the columns is checked by `cv.Study`.

    Examples
    --------
    >>> import counterveil as cv
    >>> people = cv.People("patient_id", rules={"cost": "sum"}, order="visit", max_rows=5)
    >>> study = cv.Study("treated", cv.Outcome("cost", (0, 5000)), people=people)
    >>> study.person.rules["cost"]
    'sum'
    """

    column: str
    rules: Mapping[str, str] | None = None
    order: str | None = None
    max_rows: int | None = None

    def __post_init__(self) -> None:
        _check_rows(self.column, self.order, self.max_rows)
        object.__setattr__(self, "rules", _copied(self.rules))

    def __hash__(self) -> int:
        return hash((self.column, self.order, self.max_rows))

    @classmethod
    def _of(cls, declared: object) -> People | None:
        """Return whose rows are joined; the name of a column stands for people without rules of their own."""
        if declared is None or isinstance(declared, People):
            return declared
        return cls(declared)  # type: ignore[arg-type]


@known_fields
@dataclass(frozen=True, slots=True)
class Clusters:
    """Clusters of people whose outcomes depend on each other: schools, clinics, villages.

    Intervals allow for dependence within clusters. With `protected`, the unit of protection is a cluster with
    all its rows, which become one; otherwise it stays each row, or each person.

    Parameters
    ----------
    column : str
        Column that names the cluster of a row.
    protected : bool, default False
        Protect whole clusters. Not together with `people`.
    assigned : bool, default False
        Whole clusters were assigned to the arms, and which cluster was in which arm is public.
    rules : mapping of str to str, optional
        With `protected`: the rule by which a cluster's values become one, by column, from those of
        `cv.People`; the default for numbers is "mean".
    order : str, optional
        With `protected`: column that puts a cluster's rows in order.
    max_rows : int, optional
        With `protected`: only a cluster's first rows count, so many of them; needs `order`.

    Attributes
    ----------
    column, protected, assigned, rules, order, max_rows
        As declared.

    Raises
    ------
    CounterveilError
        A declaration that is invalid (CV-S025, CV-S016).

    Examples
    --------
    >>> import counterveil as cv
    >>> schools = cv.Clusters("school", assigned=True)
    >>> study = cv.Study("treated", cv.Outcome("score", (0, 100)), clusters=schools, assignment=cv.Trial())
    >>> study.cluster.assigned
    True
    """

    column: str
    protected: bool = False
    assigned: bool = False
    rules: Mapping[str, str] | None = None
    order: str | None = None
    max_rows: int | None = None

    def __post_init__(self) -> None:
        if not is_name(self.column):
            raise _no_cluster("the name of a column without another role", shown(self.column))
        for name, flag in (("protected", self.protected), ("assigned", self.assigned)):
            if not isinstance(flag, bool):
                raise _no_cluster(f"{name}=True or False", shown(flag))
        given = {"rules": self.rules, "order": self.order, "max_rows": self.max_rows}
        beside = [name for name, value in given.items() if value is not None]
        if beside and not self.protected:
            alone = f"{beside[0]}= with protected=True, where the rows of a cluster become one"
            raise _no_cluster(alone, shown(given[beside[0]]))
        _check_rows(self.column, self.order, self.max_rows)
        object.__setattr__(self, "rules", _copied(self.rules))

    def __hash__(self) -> int:
        return hash((self.column, self.protected, self.assigned, self.order, self.max_rows))

    @classmethod
    def _of(cls, declared: object) -> Clusters | None:
        """Return the clusters; the name of a column stands for clusters that are neither protected nor assigned."""
        if declared is None or isinstance(declared, Clusters):
            return declared
        return cls(declared)  # type: ignore[arg-type]


def _copied(rules: object) -> Any:
    """Return rules that nobody else can change; none of them is the same as no rules."""
    return dict(rules) or None if isinstance(rules, Mapping) else rules


def _check_rows(column: object, order: object, max_rows: object) -> None:
    """Raise CV-S016 for names that are none, or first rows that nothing orders."""
    for name in (column,) if order is None else (column, order):
        if not is_name(name):
            raise _no_person("the name of a column without another role", shown(name))
    if column == order:
        raise _no_person("two different columns as people and order", shown(order))
    if max_rows is not None and (not isinstance(max_rows, int) or isinstance(max_rows, bool) or max_rows < 1):
        raise _no_person("max_rows=: a whole number from 1 on", shown(max_rows))


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
    def of(
        cls,
        declared: People | Clusters,
        order: str | None,
        roles: Mapping[str, Role],
    ) -> Person:
        """Return whose rows become one, with a rule for every column; raises CV-S016 for what does not fit the study.

        `order` is the column that orders rows, perhaps that of the study's periods; `roles` are those of its columns.
        Clusters become one row each.
        """
        whole_cluster = isinstance(declared, Clusters)
        for name in (declared.column, order):
            if name in roles:
                raise _no_person("the name of a column without another role", shown(name))
        if declared.column == order:
            raise _no_person("two different columns as people and order", shown(order))
        if declared.max_rows is not None and order is None:
            fix = "name the column that says which rows come first"
            raise refusal("CV-S016b", expected="an order beside max_rows=", got="no order", fix=fix)
        rules = _rules(roles, declared.rules, order, whole_cluster)
        return cls(declared.column, rules, order, declared.max_rows, whole_cluster)

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
            found["max_rows"] = self.max_rows_per_person
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


def _rules(
    roles: Mapping[str, Role], given: Mapping[str, str] | None, order: str | None, whole_cluster: bool
) -> dict[str, str]:
    if given is not None and not isinstance(given, Mapping):
        raise _no_person("rules=: a rule for each column", shown(given))
    rules = {name: role.rule(order, whole_cluster) for name, role in roles.items()}
    for name, rule in (given or {}).items():
        allowed = roles[name].allowed if name in roles else ()
        if rule not in allowed:
            what = f"{name!r}: one of {', '.join(allowed)}" if allowed else "rules for columns of the study"
            raise _no_person(what, f"{shown(name)}: {shown(rule)}")
        if rule in _ORDERED and order is None:
            fix = "name the column that puts a person's rows in order: order=..."
            raise refusal(
                "CV-S016b",
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
    def of(cls, declared: Clusters, people: People | None, columns: tuple[str, ...]) -> Cluster:
        """Return the clusters of a study with these columns; raises CV-S025 for what does not fit it."""
        if declared.column in (*columns, None if people is None else people.column):
            raise _no_cluster("the name of a column without another role", shown(declared.column))
        if declared.protected and people is not None:
            alone = "protected=True without people=: all rows of a cluster become one"
            raise _no_cluster(alone, f"people={shown(people.column)}")
        return cls(declared.column, declared.protected, declared.assigned)

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


def _no_person(expected: str, got: str) -> CounterveilError:
    return refusal("CV-S016", expected=expected, got=got)


def _no_cluster(expected: str, got: str) -> CounterveilError:
    return refusal("CV-S025", expected=expected, got=got)
