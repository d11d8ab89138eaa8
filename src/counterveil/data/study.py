"""A study: which column plays which part, and every bound and label. All of it is public."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Hashable, Mapping
from dataclasses import field
from fractions import Fraction
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, cast

from counterveil.data import row_units as units
from counterveil.data.assignment import Assignment, Observational, Propensity, Trial, checked_assignment
from counterveil.data.cells import nearest
from counterveil.data.codebooks import ENDINGS, read_codebook
from counterveil.data.conditions import Where
from counterveil.data.domains import (
    Bounds,
    CellIndex,
    Declared,
    Domain,
    Drop,
    Fill,
    Label,
    LabelIndex,
    MissingRule,
    Range,
    as_domain,
    index_of,
    plain_ends,
)
from counterveil.data.effect_formula import EffectFormula
from counterveil.data.follow_up import TimeCells, TimeToEvent
from counterveil.data.outcomes import (
    Before,
    Denominator,
    Ends,
    Outcome,
    OutcomePart,
    Ratio,
    Several,
    outcome_of,
)
from counterveil.data.row_units import Cluster, Clusters, People, Person, Role
from counterveil.data.study_documents import read_study, study_arguments, study_document, to_toml
from counterveil.data.study_facts import public_facts
from counterveil.data.treatment import Treatment, column_name
from counterveil.data.unknown_arguments import known_arguments
from counterveil.errors import CounterveilError, ParameterError, refusal, shown
from counterveil.frozen import field_names, frozen
from counterveil.privacy import Unit, exact

Made = TypeVar("Made")
# Squares and cubes of numbers up to here, and sums of them over rows, are finite doubles.
_LARGEST_COVARIATE = Fraction(10) ** 100


@frozen
class Study:
    """Which column is the treatment, the outcome and a covariate, and every bound and label; all of it is public.

    Nothing here is taken from the data: ranges set the scale of the noise, and a range computed from the rows
    would tell about one of them.

    Parameters
    ----------
    treatment : str or Treatment
        Column of the treatment, in which the label 1 means treated; or a `cv.Treatment` with other labels,
        several arms or a dose.
    outcome : Outcome, Change, Ratio, TimeToEvent, Outcomes, or mapping of str to tuple of two numbers
        The outcome with its public range. Short forms: `{"score": (0, 10)}` for one outcome and
        `{"visits": (0, 30), "spend": (0, 500)}` for several. A column without a range is refused, since no
        range is guessed.
    covariates : mapping of str to Range, Categories, Binary, tuple or list, optional
        Columns measured before treatment, with their ranges and labels: `cv.Range(18, 90)` or `(18, 90)`,
        `cv.Categories(["f", "m"])` or `["f", "m"]`, `cv.Binary()` or `"binary"`.
    assignment : Trial, Propensity or Observational, optional
        How treatment was assigned: `cv.Trial()`, perhaps with the `share` of the design;
        `cv.Propensity("column")` for a known probability of each row; `cv.Observational()`. Nothing is
        declared if omitted, and nothing is taken to be randomised.
    people : str or People, optional
        Column that identifies a person, where people have several rows; or a `cv.People` with the rules by
        which their rows become one. A person with all their rows is then protected.
    clusters : str or Clusters, optional
        Column that names clusters of rows; or a `cv.Clusters` that says whether whole clusters are protected
        or were assigned.
    missing : mapping of str to Drop or Fill, or one of them for all columns, optional
        Rules for missing values, `cv.Drop()` or `cv.Fill(value)`. Missing values without a rule are refused.
    where : str, optional
        Condition on the rows that belong to the study, such as "age >= 18 and site in ['A', 'B']". Which rows
        are chosen is public.
    estimated : mapping of str to str, optional
        Columns whose range or labels were released from these data, and what that cost, as
        `cv.drafting.estimate_ranges` writes it.

    Attributes
    ----------
    treatment : str
        Column of the treatment.
    outcome : str
        Column of the outcome; of several the primary one, of a ratio the numerator, of an event the time.
    outcomes : tuple of str
        Columns that outcomes are made of, all of them private: the outcomes, what was measured before, the
        denominator, and the column of the event.
    outcome_range : tuple of two Fractions
        Range of the outcome; of a `cv.Change` that of the change.
    outcome_bounds : Range
        The same as a `cv.Range`.
    outcome_name : str
        What the effect is on, in words: the outcome, its change, or a ratio.
    covariates : mapping of str to Range, Categories or Binary
        The covariates.
    treated, control : str, int, float or None
        Labels of two arms; None where they are not declared.
    treatment_labels : tuple of str, int or float
        Declared labels of the treatment: treated and control, as far as they are declared, or all arms.
    arms : tuple of str, int or float, or None
        Labels of several arms, the reference first; None in a study of two arms.
    doses : Range or None
        Range and cut points of a dose whose cells are the arms.
    reference : str, int, float or None
        The arm that others are compared with; None in a study of two arms.
    randomised : bool or None
        True in a trial, False for `cv.Observational()`, None where nothing was declared.
    treated_share : Fraction or None
        Probability of treatment in the trial's design.
    score : str or None
        Covariate that is each row's probability of treatment.
    person : Person or None
        Whose rows become one: `column`, `rules`, `order`, `max_rows_per_person` and `whole_cluster`; None where
        every row is somebody else.
    cluster : Cluster or None
        Clusters: `column`, `assigned` and `whole`.
    before : Before or None
        What a `cv.Change` is a change from: `columns`, or `time`, `periods` and `after`.
    denominator : Denominator or None
        Of a `cv.Ratio`: `column` and `range`.
    event : TimeCells or None
        Of a `cv.TimeToEvent`: `column`, the ends of its cells in `grid`, `causes` and `horizon`.
    several : Several or None
        Of a `cv.Outcomes`: `names`, `ranges` and `baseline`.
    where : Where or None
        Condition on rows; `where.text` is its text.
    missing : mapping of str to Drop or Fill
        Rules for missing values.
    columns : tuple of str
        Columns that are analysed: treatment, outcomes, covariates.
    read_columns : tuple of str
        The same, and those of people, clusters and the condition on rows.
    estimated : mapping of str to str
        Columns whose range or labels were released, and what that cost.

    Raises
    ------
    CounterveilError
        Before any data are seen: the study (CV-S), or arguments that it does not have (CV-P028).

    Notes
    -----
    Numbers may be ints, floats, `Decimal`, `Fraction` or texts such as "1/3"; they are stored as exact
    rationals.

    Examples
    --------
    >>> import counterveil as cv
    >>> study = cv.Study(
    ...     treatment=cv.Treatment("arm", treated="new drug", control="usual care"),
    ...     outcome=cv.Outcome("death", (0, 1)),
    ...     covariates={"age": cv.Range(18, 100), "sex": cv.Categories(["f", "m"])},
    ...     assignment=cv.Trial(share=0.5),
    ...     missing={"age": cv.Drop()},
    ...     where="age >= 18",
    ... )
    >>> study.randomised, study.covariates["age"].hi
    (True, Fraction(100, 1))
    >>> print(cv.Study("coached", {"days": (0, 28)}).to_toml())
    treatment = "coached"
    <BLANKLINE>
    [outcome]
    column = "days"
    range = [0, 28]
    <BLANKLINE>
    """

    treatment: str
    outcome: str
    outcome_range: Bounds
    covariates: Mapping[str, Domain]
    treated: Label | None
    control: Label | None
    missing: Mapping[str, MissingRule]
    randomised: bool | None
    treated_share: Fraction | None
    score: str | None
    arms: tuple[Label, ...] | None
    doses: Range | None = field(init=False)
    person: Person | None
    cluster: Cluster | None
    before: Before | None
    denominator: Denominator | None
    event: TimeCells | None
    several: Several | None
    where: Where | None
    estimated: Mapping[str, str]
    # What follows from the declarations and was asked for before: every question asks for the same.
    _known: dict[Hashable, object] | None = field(init=False, repr=False, compare=False)

    @known_arguments
    def __init__(
        self,
        treatment: str | Treatment,
        outcome: OutcomePart | Mapping[str, Ends],
        covariates: Mapping[str, Declared] | None = None,
        *,
        assignment: Assignment | None = None,
        people: str | People | None = None,
        clusters: str | Clusters | None = None,
        missing: Mapping[str, MissingRule] | MissingRule | None = None,
        where: str | Where | None = None,
        estimated: Mapping[str, str] | None = None,
    ) -> None:
        self._put(_known=None)  # nothing is kept of a study that is not whole
        self._put(before=None, denominator=None, event=None, several=None)
        treated, measured = Treatment._of(treatment), outcome_of(outcome)
        self._put(**treated._attributes())
        self._put(**measured._attributes())
        self._put(covariates=MappingProxyType(_covariates(covariates)))
        _one_role_each(self.columns)
        _check_arms(self.arms is None, measured)
        self._put(missing=MappingProxyType(_rules(missing, self)))
        self._put(**_assigned(checked_assignment(assignment), self))
        persons, grouped = People._of(people), Clusters._of(clusters)
        self._put(cluster=None if grouped is None else Cluster.of(grouped, persons, self.columns))
        if grouped is not None and grouped.protected and self.event is not None:
            raise refusal(
                "CV-S090", expected="times of rows, or of people", got="clusters that are protected"
            )
        # Rows of people, or of clusters that are protected as a whole, become one.
        joined = grouped if grouped is not None and grouped.protected else persons
        time = None if self.before is None else self.before.time
        if time is not None and persons is None:
            raise refusal(
                "CV-S018", expected="people= beside time=: whose rows are compared", got="no people="
            )
        self._put(
            person=None if joined is None else Person.of(joined, _order(joined.order, time), self.roles)
        )
        self._put(where=Where.declared(where, treated.others, self.treatment, self.treatment_labels))
        _not_by_outcomes(self.where, self.outcomes)
        self._put(estimated=MappingProxyType(_estimated(estimated, self.columns)), _known={})

    def _put(self, **values: object) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _once(self, name: Hashable, make: Callable[[], Made]) -> Made:
        """Return what `make` returned when this study was asked for it first."""
        if self._known is None:
            return make()
        if name not in self._known:
            self._known[name] = make()
        return cast("Made", self._known[name])

    @property
    def outcomes(self) -> tuple[str, ...]:
        """The names of the columns that outcomes are made of: the outcomes, what was before, divides or ends them."""
        if self.several is not None:
            return self.several.columns
        earlier = () if self.before is None else self.before.columns
        beside = () if self.denominator is None else (self.denominator.column,)
        return (self.outcome, *earlier, *beside, *(() if self.event is None else (self.event.column,)))

    @property
    def outcome_name(self) -> str:
        """What the effect is on: the outcome, its change, or a ratio."""
        if self.denominator is not None:
            return f"{self.outcome} per {self.denominator.column}"
        if self.event is not None:
            return f"time to {self.event.column}"
        if self.several is not None:
            more = len(self.several.names) - 1
            return f"{self.outcome} and {more} more outcome{'' if more == 1 else 's'}"
        if self.before is None:
            return self.outcome
        return f"change in {self.outcome} since {self.before.since()}"

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that are read: treatment, outcomes, covariates."""
        return self._once("columns", lambda: (self.treatment, *self.outcomes, *self.covariates))

    @property
    def measured(self) -> int:
        """How many private numbers a row has next to its outcome, as `Table.measures` holds them."""
        if self.event is not None:
            return 0
        if self.denominator is not None:
            return 1
        if self.several is not None:
            return len(self.several.columns) - 1
        return 0 if self.before is None else len(self.before.labels(self.outcome))

    @property
    def roles(self) -> dict[str, Role]:
        """What each column is to people whose rows become one."""
        main = (self.outcome,) if self.several is None else self.several.names
        outcome = units.OUTCOME if self.denominator is None else units.PART_OF_RATIO
        found = {self.treatment: units.TREATMENT if self.arms is None else units.ONE_OF_ARMS}
        for name in self.outcomes:
            plain = units.EARLIER if self.denominator is None and name not in main else outcome
            found[name] = plain if self.event is None else units.FOLLOW_UP
        for name, domain in self.covariates.items():
            found[name] = units.NUMBER if isinstance(domain, Range) else units.LABELS
        return found

    @property
    def unconfounded(self) -> bool:
        """Whether the design says who is treated how likely: a trial, or a declared score."""
        return self.randomised is True or self.score is not None

    @property
    def clustered(self) -> bool:
        """Whether rows, or people, of one cluster depend on each other; not where each cluster becomes one row."""
        return self.cluster is not None and not self.cluster.whole

    @property
    def cluster_columns(self) -> tuple[str, ...]:
        """The column that names clusters of several rows, if there is one."""
        return (self.cluster.column,) if self.cluster is not None and self.clustered else ()

    @property
    def unit_columns(self) -> dict[str, Any]:
        """The column of the people or clusters that are protected with all their rows, as an access policy names it."""
        if self.person is None:
            return {}
        return {"cluster" if self.person.whole_cluster else "person": self.person.column}

    @property
    def read_columns(self) -> tuple[str, ...]:
        """The same, and the columns of people, their order, their clusters and of the condition on rows."""
        return self._once("read columns", self._read_columns)

    def _read_columns(self) -> tuple[str, ...]:
        beside = () if self.person is None else self.person.columns
        subset = () if self.where is None else self.where.columns
        return tuple(dict.fromkeys((*self.columns, *self.cluster_columns, *beside, *subset)))

    @property
    def subsets(self) -> tuple[str, ...]:
        """By what rows are chosen, in words: a condition, and the periods that a person needs rows of."""
        condition = () if self.where is None else (self.where.text,)
        return condition if self.before is None else (*condition, *self.before.subsets)

    @property
    def free_to_attach(self) -> bool:
        """Whether attaching tells no more than that all rows fit: none are chosen, nor people or clusters named."""
        return not self.subsets and not self.clustered and self.person is None

    def public_columns(self, protects: str) -> tuple[str, ...]:
        """Return the names of the columns that are public where a part of every row is protected.

        These are the columns that a holder publishes (``ledger.publish``) before
        questions with that level of protection.

        Parameters
        ----------
        protects : {"outcome", "treatment and outcome", "record"}
            What is private: outcomes; treatments and outcomes; or everything about a person.

        Returns
        -------
        tuple of str
            Names of columns in the order of `read_columns`; none with "record".

        Raises
        ------
        CounterveilError
            Another word for what is private (CV-P).

        Examples
        --------
        >>> import counterveil as cv
        >>> study = cv.Study("treated", cv.Outcome("score", (0, 10)), {"age": (18, 90)})
        >>> study.public_columns("outcome"), study.public_columns("record")
        (('treated', 'age'), ())
        """
        unit = Unit.parse(protects)
        private = self.outcomes if unit.treatment_public else (self.treatment, *self.outcomes)
        return tuple(name for name in self.read_columns if unit.covariates_public and name not in private)

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
    def treatment_index(self) -> LabelIndex:
        """The labels that the treatment is compared with, or the cells that a dose lies in."""
        labels = self.treatment_labels
        return index_of(labels) if self.doses is None else CellIndex(labels, self.doses)

    def _label_index(self, name: str) -> LabelIndex | None:
        """Return the labels that a column is compared with, None for a column of numbers."""
        if name == self.treatment:
            return self.treatment_index
        domain = self.covariates.get(name)
        return None if domain is None or isinstance(domain, Range) else index_of(domain.labels)

    @property
    def missing_kinds(self) -> dict[str, str]:
        """The rule for missing values, by column: "drop" or "fill"."""
        return {name: "drop" if isinstance(rule, Drop) else "fill" for name, rule in self.missing.items()}

    @property
    def outcome_bounds(self) -> Range:
        """The public bounds of the outcome."""
        return self._once("bounds", lambda: Range(*self.outcome_range))

    def _measured_bounds(self, name: str) -> Range | None:
        """Return the declared bounds of a column that outcomes are made of, None for other columns."""
        if name not in self.outcomes:
            return None
        if self.several is not None:
            return self.several.bounds(name)
        if self.denominator is not None and name == self.denominator.column:
            return Range(*self.denominator.range)
        if self.event is not None and name == self.event.column:
            return Range(0, self.event.kinds)
        if self.before is None:
            return self.outcome_bounds
        return Range(*(self.before.outcome_range if name == self.outcome else self.before.range))

    def _changed(self, **fields_of: Any) -> Study:
        """Return the study with some attributes replaced as they are, for parts of a table and moved outcomes."""
        found = object.__new__(Study)
        object.__setattr__(found, "_known", {})
        for name in field_names(Study):
            if name != "_known":
                object.__setattr__(found, name, fields_of.get(name, getattr(self, name)))
        return found

    def public_facts(self, unit: Unit, reference: Label | None = None) -> tuple[str, ...]:
        """Return what a guarantee takes as public, one sentence per fact.

        Parameters
        ----------
        unit : Unit
            What of a row is protected.
        reference : str, int or float, optional
            The period that an event study's effects are relative to.

        Returns
        -------
        tuple of str
            Sentences without their full stops.

        Examples
        --------
        >>> import counterveil as cv
        >>> study = cv.Study("treated", cv.Outcome("score", (0, 10)), {"age": (18, 90)})
        >>> trial = {"treated": [0, 1] * 50, "score": [3, 4] * 50, "age": [30, 40] * 50}
        >>> ask = {"protects": "outcome", "epsilon": 1, "noise": cv.SeededNoise(1)}
        >>> result = cv.ate(trial, study, method="difference_in_means", **ask)
        >>> set(study.public_facts(result.guarantee.unit)) <= set(result.guarantee.public)
        True
        """
        if reference is not None:
            return public_facts(self, unit, reference)
        return self._once(("facts", unit), lambda: public_facts(self, unit))

    @property
    def unit_uses(self) -> dict[str, Any]:
        """What a ledger knows about people and clusters, as arguments of `Uses`."""
        whole = self.cluster is not None and self.cluster.whole
        return {
            "person": None if self.person is None or whole else self.person.column,
            "row_order": None if self.person is None else self.person.order,
            "cluster": None if self.cluster is None else self.cluster.column,
            "whole_cluster": whole,
            "assigned_cluster": self.cluster is not None and self.cluster.assigned,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the study as a JSON-ready dictionary; `from_dict` reads it back.

        Returns
        -------
        dict
            The keys of a study file: "treatment", "outcome", and of "covariates", "assignment", "people",
            "clusters", "missing", "where" and "estimated" what is declared.

        Examples
        --------
        >>> import counterveil as cv
        >>> cv.Study("treated", cv.Outcome("score", (0, 10)), {"age": (18, 90)}).to_dict()["covariates"]
        {'age': {'range': [18, 90]}}
        """
        return study_document(self)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Study:
        """Return the study in a dictionary, as `to_dict` writes it.

        Parameters
        ----------
        document : mapping
            The keys of a study file.

        Returns
        -------
        Study
            The study; equal to the one that was written.

        Raises
        ------
        CounterveilError
            Keys or values that make no study (CV-S013), open questions of a draft (CV-S120), or a study that
            is invalid (other CV-S).

        Examples
        --------
        >>> import counterveil as cv
        >>> study = cv.Study("treated", cv.Outcome("score", (0, 10)))
        >>> cv.Study.from_dict(study.to_dict()) == study
        True
        """
        return cls(**study_arguments(document))

    def to_toml(self) -> str:
        """Return the text of a study file.

        Returns
        -------
        str
            TOML with the keys of `to_dict`; `from_toml` reads the file that it is written to.

        Examples
        --------
        >>> import counterveil as cv
        >>> print(cv.Study("treated", cv.Outcome("score", (0, 10)), assignment=cv.Trial()).to_toml())
        treatment = "treated"
        assignment = "trial"
        <BLANKLINE>
        [outcome]
        column = "score"
        range = [0, 10]
        <BLANKLINE>
        """
        return to_toml(self.to_dict())

    @classmethod
    def from_toml(cls, path: str | PathLike[str]) -> Study:
        """Return the study declared in a TOML file.

        Parameters
        ----------
        path : str or path-like
            Path of the file; "study.toml#NAME" names one of several studies in a file.

        Returns
        -------
        Study
            The study.

        Raises
        ------
        CounterveilError
            A file that cannot be read or declares no study: CV-S.

        Examples
        --------
        >>> import counterveil as cv
        >>> from pathlib import Path
        >>> study = cv.Study("treated", cv.Outcome("score", (0, 10)))
        >>> written = Path("study.toml").write_text(study.to_toml(), encoding="utf-8")
        >>> cv.Study.from_toml("study.toml") == study
        True
        """
        return cls.from_dict(read_study(path))

    @classmethod
    def from_formula(cls, formula: str, declared: object, **more: Any) -> Study:
        """Return the study of a formula, "outcome ~ treatment | covariates"; "| ." takes all covariates.

        An outcome Surv(days, death) is a time to an event; the range of the time ends at the end of
        follow-up.

        Parameters
        ----------
        formula : str
            Which columns play which part: "score ~ treated | age + sex".
        declared : Study, mapping, str or PathLike
            A wider study; a mapping from names to ranges and labels, such as
            ``{"score": (0, 10), "age": (18, 90), "sex": ["f", "m"]}``; or the path of a study file or of a
            codebook. Of two labels of the treatment, the first is the control, as in R:
            ``["usual care", "new drug"]``.
        **more
            Beside a mapping or a codebook: `assignment`, `people`, `clusters`, `missing`, `where` and
            `estimated` as `Study` takes them; `treatment` and `outcome` as parts (`cv.Treatment`,
            `cv.Change`) about the columns of the formula.

        Returns
        -------
        Study
            The study of the columns that the formula names.

        Raises
        ------
        CounterveilError
            A formula or declarations that make no study (CV-S150 and other CV-S).

        Examples
        --------
        >>> import counterveil as cv
        >>> ranges = {"score": (0, 10), "age": (18, 90)}
        >>> study = cv.Study.from_formula("score ~ treated | age", ranges, assignment=cv.Trial())
        >>> study.treatment, study.outcome, list(study.covariates)
        ('treated', 'score', ['age'])
        """
        declared = read_declared(declared)
        if isinstance(declared, Study) and not more:
            return declared._chosen(formula)
        if not isinstance(declared, Mapping):
            raise refusal("CV-S150c", got=declared)
        given = {name: more.pop(name) for name in ("treatment", "outcome") if name in more}
        names = [name for name in declared if isinstance(name, str)]
        chosen = EffectFormula.read(
            formula, names, lambda name: not isinstance(as_domain(name, declared[name]), Range), ranges=True
        )
        covariates = {name: as_domain(name, declared[name]) for name in chosen.covariates}
        treatment = Treatment._of(given.get("treatment", _treatment_of(chosen.treatment, declared)))
        outcome = outcome_of(given.get("outcome", _outcome_of(chosen, declared)))
        for role, name, found in (
            ("treatment", chosen.treatment, treatment.column),
            ("outcome", chosen.outcome, outcome._attributes()["outcome"]),
        ):
            if name != found:
                raise refusal("CV-S150d", role=role, known=repr(found), name=name)
        return cls(treatment, outcome, covariates, **more)

    def _chosen(self, formula: str) -> Study:
        """Return the part of this study that a formula names: one of its outcomes and some of its covariates."""
        own = (self.outcome,) if self.several is None else self.several.names
        chosen = EffectFormula.read(
            formula,
            (*own, *self.covariates),
            lambda name: name not in own and not isinstance(self.covariates[name], Range),
            ranges=False,
        )
        for role, name, known in (
            ("treatment", chosen.treatment, (self.treatment,)),
            ("outcome", chosen.outcome, own),
        ):
            if name not in known:
                raise refusal("CV-S150d", role=role, known=" or ".join(map(repr, known)), name=name)
        event = None if self.event is None else self.event.column
        if chosen.event not in (None, event):
            raise refusal(
                "CV-S150d", role="event", known="none" if event is None else repr(event), name=chosen.event
            )
        document = self.to_dict()
        gone = {*self.covariates, *(() if self.several is None else self.several.columns)}
        gone -= {chosen.outcome, *chosen.covariates}
        tables = [document, *(document[unit] for unit in ("people", "clusters") if unit in document)]
        for table in tables:
            for key in {"covariates", "missing", "rules", "estimated"} & set(
                table if isinstance(table, dict) else ()
            ):
                table[key] = {name: told for name, told in table[key].items() if name not in gone}
        if self.several is not None:
            ends = plain_ends(dict(self.several.ranges)[chosen.outcome])
            document["outcome"] = {"column": chosen.outcome, "range": ends}
        return Study.from_dict(document)

    def narrowed(self, where: str | None) -> Study:
        """Return the study of those of its rows for which another condition holds too.

        Parameters
        ----------
        where : str or None
            Condition on rows, such as "age >= 18 and site in ['A', 'B']"; None returns the study itself.

        Returns
        -------
        Study
            The study of the rows for which both conditions hold.

        Raises
        ------
        CounterveilError
            A condition that cannot be read (CV-S), or on an outcome (CV-S123).

        Examples
        --------
        >>> import counterveil as cv
        >>> study = cv.Study("treated", cv.Outcome("score", (0, 10)), where="site == 'A'")
        >>> study.narrowed("age >= 18").where.text
        "age >= 18 and site == 'A'"
        """
        if where is None:
            return self
        return Study.from_dict(self.to_dict() | {"where": Where.of(where).both(self.where).text})

    def fingerprint(self) -> str:
        """Return the SHA-256 of the canonical form; equal studies have equal fingerprints.

        Returns
        -------
        str
            64 hexadecimal digits.

        Examples
        --------
        >>> import counterveil as cv
        >>> study = cv.Study("treated", cv.Outcome("score", (0, 10)))
        >>> study.fingerprint() == cv.Study("treated", {"score": (0, 10.0)}).fingerprint()
        True
        """
        return self._once("fingerprint", self._fingerprint)

    def _fingerprint(self) -> str:
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def __repr__(self) -> str:
        return f"Study.from_dict({self.to_dict()!r})"

    def __str__(self) -> str:
        return self.to_toml()

    def __hash__(self) -> int:
        return hash((self.treatment, self.outcome, self.outcome_range, tuple(sorted(self.covariates))))

    def __reduce__(self) -> tuple[object, ...]:
        # Read-only mappings do not pickle; the declarations do.
        return (Study.from_dict, (self.to_dict(),))


def read_declared(declared: object) -> object:
    """Return what stands in a study file or in a codebook, where a path is given."""
    if not isinstance(declared, str | PathLike):
        return declared
    return read_codebook(declared) if Path(declared).suffix.lower() in ENDINGS else Study.from_toml(declared)


def _treatment_of(column: str, declared: Mapping[str, Any]) -> Treatment:
    """Return the treatment of a formula with the labels, or the cut points, that are declared of its column."""
    if column not in declared:
        return Treatment(column)
    arms = as_domain(column, declared[column])
    if isinstance(arms, Range):
        return Treatment(column, arms=arms) if arms.cuts else Treatment(column)
    labels = arms.labels
    if len(labels) == 2:
        return Treatment(column, treated=labels[1], control=labels[0])
    return Treatment(column, arms=labels, reference=labels[0]) if len(labels) > 2 else Treatment(column)


def _outcome_of(chosen: EffectFormula, declared: Mapping[str, Any]) -> Outcome | TimeToEvent:
    outcome = as_domain(chosen.outcome, declared[chosen.outcome])
    ends = (outcome.lo, outcome.hi) if isinstance(outcome, Range) else (0, 1)
    if chosen.event is not None:
        return TimeToEvent(chosen.outcome, chosen.event, horizon=ends[1])
    return Outcome(chosen.outcome, ends)


def _covariates(covariates: object) -> dict[str, Domain]:
    given = {} if covariates is None else covariates
    if not isinstance(given, Mapping):
        raise refusal("CV-S008", what="covariates", got=type(given).__name__)
    found = {column_name(name, "covariate"): as_domain(name, domain) for name, domain in given.items()}
    for name, domain in found.items():
        if isinstance(domain, Range) and max(abs(domain.lo), abs(domain.hi)) > _LARGEST_COVARIATE:
            raise refusal("CV-S162", name=name, domain=domain)
    return found


def _one_role_each(columns: tuple[str, ...]) -> None:
    if len(set(columns)) == len(columns):
        return
    seen = set()
    for name in columns:
        if name in seen:
            raise refusal("CV-S005", name=name)
        seen.add(name)


def _check_arms(two_arms: bool, outcome: OutcomePart) -> None:
    """Raise CV-S019 or CV-S090 for outcomes that compare two arms, beside several."""
    if not two_arms and isinstance(outcome, Ratio):
        raise refusal("CV-S019", expected="a ratio of two arms", got="several arms")
    if not two_arms and isinstance(outcome, TimeToEvent):
        raise refusal("CV-S090", expected="a study of two arms with a time to an event", got="several arms")


def _not_by_outcomes(where: Where | None, outcomes: tuple[str, ...]) -> None:
    private = [name for name in outcomes if where is not None and name in where.columns]
    if private:
        raise refusal("CV-S123", private=private[0])


def _estimated(estimated: object, columns: tuple[str, ...]) -> dict[str, str]:
    given = {} if estimated is None else estimated
    if isinstance(given, Mapping) and all(
        name in columns and isinstance(cost, str) and cost for name, cost in given.items()
    ):
        return dict(given)
    raise refusal("CV-S127", estimated=estimated)


def _rules(missing: object, study: Study) -> dict[str, MissingRule]:
    if isinstance(missing, Fill | Drop):
        missing = dict.fromkeys(study.columns, missing)
    given = {} if missing is None else missing
    if not isinstance(given, Mapping):
        raise _no_rule("missing", type(given).__name__, "pass one rule, or one per column")
    columns = set(study.columns)
    for name, rule in given.items():
        if name not in columns:
            raise _no_rule("missing", f"a rule for {name!r}", nearest(name, study.columns, "the study"))
        if not isinstance(rule, Fill | Drop):
            raise _no_rule(f"column {name!r}", shown(rule), "write cv.Drop() or cv.Fill(value)")
        if isinstance(rule, Fill):
            _check_fill(name, rule, study)
    return dict(given)


def _check_fill(name: str, rule: Fill, study: Study) -> None:
    domain = study._measured_bounds(name) or study.covariates.get(name)
    if isinstance(domain, Range):
        try:
            fits = domain.lo <= exact(rule.value, "Fill") <= domain.hi
        except ParameterError:
            fits = False
        allowed = f"a number in [{domain.lo}, {domain.hi}]"
    else:
        labels = study.treatment_labels if domain is None else domain.labels
        fits = (study.treatment_index if domain is None else LabelIndex(labels)).code(rule.value) is not None
        allowed = f"one of {list(labels)!r}"
    if not fits:
        raise refusal("CV-S010", name=name, expected=allowed, rule=rule.value)


def _order(order: str | None, time: str | None) -> str | None:
    """Return the column that orders a person's rows: that of the periods where there are any."""
    if order is not None and time is not None:
        raise refusal("CV-S018b", order=order, time=time)
    return order if time is None else time


def _assigned(assignment: Assignment | None, study: Study) -> dict[str, Any]:
    """Return how treatment was assigned, by the attributes of `Study`."""
    found: dict[str, Any] = {"randomised": None, "treated_share": None, "score": None}
    if isinstance(assignment, Trial):
        if assignment.share is not None and study.arms is not None:
            raise refusal("CV-S061", got=f"cv.Trial(share={shown(assignment.share)})")
        return found | {"randomised": True, "treated_share": assignment.probability}
    if isinstance(assignment, Propensity):
        return found | {"score": _score(assignment.column, study)}
    return found | ({"randomised": False} if isinstance(assignment, Observational) else {})


def _score(name: str, study: Study) -> str:
    """Return the covariate that is every row's probability of treatment; raises CV-S027 or CV-S027b."""
    if study.arms is not None:
        raise refusal("CV-S027b", score=name, given="several arms")
    if isinstance(study.missing.get(name), Fill):
        raise refusal("CV-S027b", score=name, given="cv.Fill for it")
    domain = study.covariates.get(name)
    if not isinstance(domain, Range) or not 0 < domain.lo <= domain.hi < 1:
        raise refusal("CV-S027", score=name, domain=None if domain is None else domain.words())
    return name


def _no_rule(what: str, got: str, fix: str) -> CounterveilError:
    return refusal("CV-S009", what=what, got=got, fix=fix)
