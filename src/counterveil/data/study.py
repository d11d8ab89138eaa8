"""The study: which column plays which role, and every bound and label; all public."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from os import PathLike
from types import MappingProxyType
from typing import Any

from counterveil.data import documents, facts
from counterveil.data.domains import Binary, Categories, Domain, Range
from counterveil.data.labels import (
    Drop,
    Fill,
    Label,
    LabelIndex,
    MissingRule,
    arm_labels,
    checked_label,
    first_confusable,
)
from counterveil.data.outcomes import Before, Per, declared_before, declared_per
from counterveil.data.person import Person, declared
from counterveil.data.where import Where
from counterveil.data.where import declared as declared_subset
from counterveil.data.wrong_data import nearest
from counterveil.errors import ParameterError, Refusal, StudyError, shown
from counterveil.privacy import Number, Unit, exact

_TREATED = 1  # the label that means treated unless the study says otherwise


@dataclass(frozen=True, slots=True, init=False)
class Study:
    """Roles, bounds, labels and missing rules; nothing in it is private.

    A study of two arms has `treated` and perhaps `control`; one of several arms has `arms`, the reference
    first, and then `treated` and `control` are None. Where people have several rows, `person` says whose a row is
    and how the rows of a person become one. With `before`, everyone's outcome is their own change since then, and
    `outcome_range` is the range of the change. With `per`, arms are compared by sums of the outcome over sums of it.
    `where` says which rows belong to the study; without it all do.
    `bought` names the columns whose range or labels were released from these data, and what that cost.
    """

    treatment: str
    outcome: str
    outcome_range: tuple[Fraction, Fraction]
    covariates: Mapping[str, Domain]
    treated: Label | None
    control: Label | None
    missing: Mapping[str, MissingRule]
    randomised: bool | None
    treated_share: Fraction | None
    arms: tuple[Label, ...] | None
    person: Person | None
    before: Before | None
    per: Per | None
    where: Where | None
    bought: Mapping[str, str]

    def __init__(
        self,
        treatment: str,
        outcome: str,
        outcome_range: tuple[Number, Number] | None = None,
        covariates: Mapping[str, Domain] | None = None,
        treated: Label = _TREATED,
        control: Label | None = None,
        missing: Mapping[str, MissingRule] | MissingRule | None = None,
        randomised: bool | None = None,
        treated_share: Number | None = None,
        arms: tuple[Label, ...] | None = None,
        reference: Label | None = None,
        person: str | None = None,
        per_person: Mapping[str, str] | None = None,
        order: str | None = None,
        most_rows: int | None = None,
        before: str | Sequence[Label] | None = None,
        before_range: tuple[Number, Number] | None = None,
        change_range: tuple[Number, Number] | None = None,
        time: str | None = None,
        after: Sequence[Label] | Label | None = None,
        per: str | None = None,
        per_range: tuple[Number, Number] | None = None,
        where: str | Where | None = None,
        others: str | None = None,
        bought: Mapping[str, str] | None = None,
    ) -> None:
        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        put("treatment", _column_name(treatment, "treatment"))
        put("outcome", _column_name(outcome, "outcome"))
        bounds = _outcome_bounds(outcome_range, outcome)
        put("outcome_range", (bounds.lo, bounds.hi))
        put("covariates", MappingProxyType(_covariates(covariates)))
        earlier = {"before": before, "before_range": before_range, "change_range": change_range}
        put("before", declared_before(self, earlier | {"time": time, "after": after, "person": person}))
        put("per", None)
        label = checked_label(treated, "treated")
        two_arms = {
            "treated": None if label == _TREATED else label,
            "control": control,
            "treated_share": treated_share,
        }
        put("arms", arm_labels(arms, reference, two_arms))
        put("per", declared_per(self, per, per_range))
        _one_role_each(self.columns)
        put("treated", label if self.arms is None else None)
        put("control", None if control is None else checked_label(control, "control"))
        _two_arms(self.treated, self.control)
        put("missing", MappingProxyType(_rules(missing, self)))
        put("randomised", _truth(randomised))
        put("treated_share", _share(treated_share, self.randomised))
        put("person", declared(self, person, per_person, _order(order, time), most_rows))
        if self.before is not None:
            put("outcome_range", self.before.bounds)
        put("where", declared_subset(where, others, self.treatment, self.treatment_labels))
        _not_by_outcomes(self.where, self.outcomes)
        put("bought", MappingProxyType(_bought(bought, self.columns)))

    @property
    def outcomes(self) -> tuple[str, ...]:
        """The names of the columns that outcomes are made of: the outcome, what was before it or divides it."""
        earlier = () if self.before is None else self.before.columns
        return (self.outcome, *earlier, *(() if self.per is None else (self.per.column,)))

    @property
    def outcome_name(self) -> str:
        """What the effect is on: the outcome, its change, or a ratio."""
        if self.per is not None:
            return f"{self.outcome} per {self.per.column}"
        if self.before is None:
            return self.outcome
        return f"change in {self.outcome} since {self.before.since()}"

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that are read: treatment, outcomes, covariates."""
        return (self.treatment, *self.outcomes, *self.covariates)

    @property
    def read_columns(self) -> tuple[str, ...]:
        """The same, and the columns that say whose a row is, which comes first and which belongs to the study."""
        beside = () if self.person is None else self.person.columns
        subset = () if self.where is None else self.where.columns
        return tuple(dict.fromkeys((*self.columns, *beside, *subset)))

    @property
    def public_columns(self) -> tuple[str, ...]:
        """The names of the columns that are public where only outcomes are protected."""
        return tuple(name for name in self.read_columns if name not in self.outcomes)

    @property
    def reference(self) -> Label | None:
        """The arm that the others are compared with; None in a study of two arms."""
        return None if self.arms is None else self.arms[0]

    @property
    def treatment_labels(self) -> tuple[Label, ...]:
        """The declared labels of the treatment: treated and control (where given), or all arms."""
        if self.arms is not None:
            return self.arms
        return tuple(label for label in (self.treated, self.control) if label is not None)

    @property
    def missing_kinds(self) -> dict[str, str]:
        """The rule for missing values, by column: "drop" or "fill"."""
        return {name: "drop" if isinstance(rule, Drop) else "fill" for name, rule in self.missing.items()}

    @property
    def outcome_bounds(self) -> Range:
        """The public bounds of the outcome."""
        return Range(*self.outcome_range)

    def measured_bounds(self, name: str) -> Range | None:
        """Return the declared bounds of a column that outcomes are made of, None for other columns."""
        if name not in self.outcomes:
            return None
        if self.per is not None and name == self.per.column:
            return Range(*self.per.range)
        if self.before is None:
            return self.outcome_bounds
        return Range(*(self.before.outcome_range if name == self.outcome else self.before.range))

    def changed(self, **fields_of: Any) -> Study:
        """Return the study with some attributes replaced as they are, for parts of a table and moved outcomes."""
        found = object.__new__(Study)
        for each in fields(self):
            object.__setattr__(found, each.name, fields_of.get(each.name, getattr(self, each.name)))
        return found

    def public_facts(self, unit: Unit) -> tuple[str, ...]:
        """Return what a guarantee that protects `unit` takes as public, one sentence per fact."""
        return facts.public_facts(self, unit)

    def to_dict(self) -> dict[str, Any]:
        """Return the study as a JSON-ready dictionary; `from_dict` reads it back."""
        return documents.study_to_dict(self)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Study:
        """Return the study in a dictionary, as `to_dict` writes it."""
        return cls(**documents.study_arguments(document))

    def to_toml(self) -> str:
        """Return the text of a study file."""
        return documents.to_toml(self.to_dict())

    @classmethod
    def from_toml(cls, path: str | PathLike[str]) -> Study:
        """Return the study declared in a TOML file; "study.toml#NAME" names one of several in a file."""
        return cls.from_dict(documents.read_study(path))

    def narrowed(self, where: str | None) -> Study:
        """Return the study of those of its rows for which another condition holds too."""
        if where is None:
            return self
        return Study.from_dict(self.to_dict() | {"where": Where.of(where).both(self.where).text})

    def fingerprint(self) -> str:
        """Return the SHA-256 of the canonical form; equal studies have equal fingerprints."""
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def __str__(self) -> str:
        return self.to_toml()

    def __hash__(self) -> int:
        return hash((self.treatment, self.outcome, self.outcome_range, tuple(sorted(self.covariates))))

    def __reduce__(self) -> tuple[object, ...]:
        # Read-only mappings do not pickle; the declarations do.
        return (Study.from_dict, (self.to_dict(),))


def _column_name(name: object, role: str) -> str:
    if isinstance(name, str) and name.strip():
        return name
    raise StudyError(
        "CV-S004",
        f"the {role} has no valid column name",
        expected="a non-blank text",
        got=shown(name),
        fix=f"name the column that holds the {role}, as it is written in the data",
    )


def _outcome_bounds(outcome_range: object, outcome: str) -> Range:
    if not isinstance(outcome_range, tuple | list) or len(outcome_range) != 2:
        raise StudyError(
            "CV-S001",
            "the outcome has no public range",
            expected="outcome_range=(lowest, highest), known without looking at the data",
            got=f"outcome_range={shown(outcome_range)}",
            fix="declare the range of the measure, e.g. outcome_range=(0, 1) for a binary outcome",
        )
    return Range(outcome_range[0], outcome_range[1], name=f"outcome {outcome!r}")


def _covariates(covariates: object) -> dict[str, Domain]:
    given = {} if covariates is None else covariates
    if not isinstance(given, Mapping):
        raise _bad_domain("covariates", type(given).__name__)
    for name, domain in given.items():
        _column_name(name, "covariate")
        if not isinstance(domain, Range | Binary | Categories):
            raise _bad_domain(f"covariate {name!r}", shown(domain))
    return dict(given)


_bad_domain = Refusal(
    "CV-S008",
    "{what}: no domain is declared",
    expected="a mapping from column name to Range(lo, hi), Binary() or Categories([...])",
    got="{got}",
    fix='for example covariates={{"age": Range(18, 90), "smoker": Binary()}}',
)


def _one_role_each(columns: tuple[str, ...]) -> None:
    if len(set(columns)) == len(columns):
        return
    seen = set()
    for name in columns:
        if name in seen:
            raise StudyError(
                "CV-S005",
                f"column {name!r} has two roles",
                expected="treatment, outcome and covariates in different columns",
                got=f"{shown(name)} named twice",
                fix="leave the column in one role",
            )
        seen.add(name)


def _two_arms(treated: Label | None, control: Label | None) -> None:
    if treated is not None and control is not None and first_confusable((treated, control)) is not None:
        raise StudyError(
            "CV-S007",
            "treated and control are the same label",
            expected="two labels that differ as text and as numbers",
            got=f"treated={shown(treated)}, control={shown(control)}",
            fix="give the label of each arm, or leave control out if there is only one other label",
        )


def _not_by_outcomes(where: Where | None, outcomes: tuple[str, ...]) -> None:
    private = [name for name in outcomes if where is not None and name in where.columns]
    if private:
        raise StudyError(
            "CV-S123",
            "rows are chosen by the outcome",
            expected="where= over columns other than the outcome",
            got=f"a condition on {private[0]!r}",
            fix="leave it out: the outcome is protected, and an effect among people chosen by it is biased; missing "
            "outcomes are treated by missing=",
        )


def _bought(bought: object, columns: tuple[str, ...]) -> dict[str, str]:
    given = {} if bought is None else bought
    if isinstance(given, Mapping) and all(
        name in columns and isinstance(cost, str) and cost for name, cost in given.items()
    ):
        return dict(given)
    raise StudyError(
        "CV-S127",
        "the declaration of what was bought is invalid",
        expected="columns of the study, and for each in words what its release cost",
        got=f"bought={shown(bought)}",
        fix="leave it as `counterveil draft --buy` writes it",
    )


def _rules(missing: object, study: Study) -> dict[str, MissingRule]:
    if isinstance(missing, Fill | Drop):
        missing = dict.fromkeys(study.columns, missing)
    given = {} if missing is None else missing
    if not isinstance(given, Mapping):
        raise _bad_rule("missing", type(given).__name__, "pass Drop(), Fill(value), or one rule per column")
    columns = set(study.columns)
    for name, rule in given.items():
        if name not in columns:
            raise _bad_rule("missing", f"a rule for {name!r}", nearest(name, study.columns, "the study"))
        if not isinstance(rule, Fill | Drop):
            raise _bad_rule(f"column {name!r}", shown(rule), "write Drop() or Fill(value)")
        if isinstance(rule, Fill):
            _check_fill(name, rule, study)
    return dict(given)


_bad_rule = Refusal(
    "CV-S009",
    "{what}: the rule for missing values is invalid",
    expected="Drop() or Fill(value) for columns of the study",
    got="{got}",
    fix="{fix}",
)


def _check_fill(name: str, rule: Fill, study: Study) -> None:
    domain = study.measured_bounds(name) or study.covariates.get(name)
    if isinstance(domain, Range):
        try:
            fits = domain.lo <= exact(rule.value, "Fill") <= domain.hi
        except ParameterError:
            fits = False
        allowed = f"a number in [{domain.lo}, {domain.hi}]"
    else:
        labels = study.treatment_labels if domain is None else domain.labels
        fits = LabelIndex(labels).code(rule.value) is not None
        allowed = f"one of {list(labels)!r}"
    if not fits:
        raise StudyError(
            "CV-S010",
            f"column {name!r}: the fill value is not in its domain",
            expected=allowed,
            got=f"Fill({shown(rule.value)})",
            fix="fill with a declared value, or use Drop()",
        )


def _order(order: str | None, time: str | None) -> str | None:
    """Return the column that orders a person's rows: that of the periods where there are any."""
    if order is not None and time is not None:
        raise StudyError(
            "CV-S018",
            "the declaration of what was measured before is invalid",
            expected="order= or time=: time= orders a person's rows",
            got=f"order={shown(order)}, time={shown(time)}",
            fix="leave order= out",
        )
    return order if time is None else time


def _truth(randomised: object) -> bool | None:
    if randomised is None or isinstance(randomised, bool):
        return randomised
    raise StudyError(
        "CV-S012",
        "randomised must be True, False or None",
        expected="True for a randomised trial, False for an observational study, None if unknown",
        got=f"randomised={shown(randomised)}",
        fix="pass True or False",
    )


def _share(treated_share: Number | None, randomised: bool | None) -> Fraction | None:
    if treated_share is None:
        return None
    try:
        share = exact(treated_share, "treated_share")
    except ParameterError:
        share = None
    if share is None or not 0 < share < 1 or randomised is not True:
        raise StudyError(
            "CV-S011",
            "treated_share is not the assignment probability of a randomised trial",
            expected="a number strictly between 0 and 1, together with randomised=True",
            got=f"treated_share={shown(treated_share)}, randomised={shown(randomised)}",
            fix="pass the probability published in the trial's design, or leave it out",
        )
    return share
