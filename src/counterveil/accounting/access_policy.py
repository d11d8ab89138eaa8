"""The access policy of an account and what a request uses: pure data; `accounts.py` decides what is allowed."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any

from counterveil.bounded_reading import UnreadableError, parse_toml, read_text
from counterveil.errors import CounterveilError, ParameterError, refusal, shown
from counterveil.frozen import field_names, frozen
from counterveil.privacy import Budget, Number, Unit, exact, show

MOST_NAMES = 10_000
LONGEST_NAME = 200
_LISTS = ("covariates", "more_outcomes", "subsets", "subset_columns")


@dataclass(frozen=True, slots=True)
class Uses:
    """What one request reads and protects; the account's access policy is compared with it.

    Attributes
    ----------
    unit : Unit
        What is protected.
    question : str
        Name of the question.
    method : str
        Name of the method, as it runs.
    treatment : str
        Column of the treatment.
    outcome : str
        Column of the outcome.
    covariates : tuple of str
        Columns of the covariates. Default: none.
    missing : mapping of str to {"drop", "fill"}
        Rules for missing values by column. Default: none.
    unproved : bool, default False
        Whether the form has no finite-sample guarantee.
    person : str or None
        Column that identifies people with several rows.
    row_order : str or None
        Column that puts the rows of a person in order.
    cluster : str or None
        Column that names clusters.
    whole_cluster : bool, default False
        Whether whole clusters are protected.
    assigned_cluster : bool, default False
        Whether each cluster lies in one arm.
    more_outcomes : tuple of str
        Private columns that the outcome is compared with or divided by. Default: none.
    subsets : tuple of str
        Conditions and periods by which rows are chosen. Default: none.
    subset_columns : tuple of str
        Columns that these conditions read. Default: none.
    look : int or None
        Which planned interim look this is, from 1 on; None for other requests.

    Examples
    --------
    >>> from counterveil.accounting import Uses
    >>> from counterveil.privacy import Unit
    >>> Uses(Unit.RECORD, question="mean", method="my own", treatment="treated", outcome="age").columns
    ('treated', 'age')
    """

    unit: Unit
    question: str
    method: str
    treatment: str
    outcome: str
    covariates: tuple[str, ...] = ()
    missing: Mapping[str, str] = field(default_factory=dict)
    unproved: bool = False
    # The column that identifies people with several rows, and the one that puts their rows in order.
    person: str | None = None
    row_order: str | None = None
    # The column that names clusters, whether whole clusters are protected, and whether each is in one arm.
    cluster: str | None = None
    whole_cluster: bool = False
    assigned_cluster: bool = False
    # Private columns that the outcome is compared with or divided by: as private as the outcome.
    more_outcomes: tuple[str, ...] = ()
    # By what rows are chosen, a condition or periods, and the columns that this looks at.
    subsets: tuple[str, ...] = ()
    subset_columns: tuple[str, ...] = ()
    # Which of the planned looks this is, from 1 on; None for other requests.
    look: int | None = None

    def __post_init__(self) -> None:
        _check_columns((*self.columns, *self._beside))
        for name in _LISTS:
            object.__setattr__(self, name, tuple(getattr(self, name)))
        object.__setattr__(self, "missing", MappingProxyType(dict(self.missing)))

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns of the study: treatment, outcomes, covariates."""
        return (self.treatment, *self.outcomes, *self.covariates)

    @property
    def outcomes(self) -> tuple[str, ...]:
        """The columns that outcomes are made of."""
        return (self.outcome, *self.more_outcomes)

    @property
    def read(self) -> tuple[str, ...]:
        """All columns that are read, in whatever role."""
        return (*self.columns, *self._beside)

    @property
    def made_public(self) -> tuple[str, ...]:
        """The columns whose exact values the answer may show: none where whole records are protected."""
        arms = (self.treatment,) if self.unit.treatment_public else ()
        return (*arms, *self.covariates, *self._beside) if self.unit.covariates_public else ()

    @property
    def _beside(self) -> tuple[str, ...]:
        """The columns of people, of their order and clusters, and those that choose rows."""
        known = (self.person, self.row_order, self.cluster)
        return (*(name for name in known if name is not None), *self.subset_columns)

    @property
    def protected_cluster(self) -> str | None:
        """The column of the clusters that are protected as a whole, if any are."""
        return self.cluster if self.whole_cluster else None

    @property
    def named_cluster(self) -> str | None:
        """The column of clusters of protected people: which clusters there are is shown."""
        return None if self.whole_cluster else self.cluster

    def to_dict(self) -> dict[str, object]:
        """Return the facts as they stand in a ledger.

        Returns
        -------
        dict
            The attributes, JSON-ready.
        """
        own = {each.name: getattr(self, each.name) for each in fields(self)}
        changed = {"unit": self.unit.value, "missing": dict(self.missing)}
        return own | changed | {name: list(getattr(self, name)) for name in _LISTS}

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> Uses:
        """Return what `to_dict` wrote.

        Parameters
        ----------
        facts : mapping
            The facts.

        Returns
        -------
        Uses
            The same uses.
        """
        return cls(**{**facts, "unit": Unit(facts["unit"])})

    def __hash__(self) -> int:
        # Read-only mappings have no hash.
        return hash((self.unit, self.question, self.method, self.treatment, self.outcome, self.covariates))

    def __reduce__(self) -> tuple[object, ...]:
        # Read-only mappings do not pickle.
        return (Uses.from_dict, (self.to_dict(),))


def usable(name: object, longest: int = LONGEST_NAME) -> bool:
    """Return whether a name of a column or method can be written down and read back."""
    if not isinstance(name, str) or not name.strip() or len(name) > longest:
        return False
    return name.isascii() or not any("\ud800" <= character <= "\udfff" for character in name)


def _check_columns(columns: tuple[object, ...]) -> None:
    """Raise CV-L048 where the columns of a study cannot be written into a ledger."""
    wrong = next((name for name in columns if not usable(name)), None)
    if wrong is not None or len(columns) > MOST_NAMES:
        raise refusal(
            "CV-L048",
            most_names=MOST_NAMES,
            longest_name=LONGEST_NAME,
            got=f"{len(columns)} columns" if wrong is None else shown(wrong),
        )


MOST_LOOKS = 100
_LONGEST_NUMBER = 120
_NUMBERS = ("epsilon", "delta", "alpha")


@dataclass(frozen=True, slots=True)
class Look:
    """One planned interim look at an outcome.

    Attributes
    ----------
    rows : int
        Number of rows, or people, that are planned to be there.
    budget : Budget
        What the look spends.
    alpha : Fraction
        Probability that its interval misses the effect. The alphas of all looks add up to one minus their
        joint level.
    """

    rows: int
    budget: Budget
    alpha: Fraction


@dataclass(frozen=True, slots=True)
class Looks:
    """The interim looks at an outcome that an access policy plans.

    No other request that reads the outcome is allowed then.

    Attributes
    ----------
    outcome : str
        Column of the outcome.
    planned : tuple of Look
        The looks in order; rows increase.

    Raises
    ------
    CounterveilError
        A plan that cannot be used (CV-L040).
    """

    outcome: str
    planned: tuple[Look, ...]

    def __post_init__(self) -> None:
        rows = [look.rows for look in self.planned]
        good = usable(self.outcome) and 0 < len(rows) <= MOST_LOOKS
        # The longest of their names, under which looks are asked for.
        good = good and usable(name := self.request_id(len(rows))) and name.isprintable()
        good = good and all(earlier < later for earlier, later in itertools.pairwise([0, *rows]))
        if not good or sum(look.alpha for look in self.planned) >= 1:
            raise refusal("CV-L040b", got=f"{len(rows)} looks with rows {rows[:10]}")
        # What is registered is read back from its text: a plan that could not be would lock the ledger.
        written = [text for name in _NUMBERS for text in self.to_dict()[name]]
        if any(look.alpha <= 0 for look in self.planned) or max(map(len, written)) > _LONGEST_NUMBER:
            raise refusal("CV-L040b", got="a number that cannot be used")

    @property
    def request_ids(self) -> tuple[str, ...]:
        """Names of the requests of all looks, which no other request may have."""
        return tuple(self.request_id(number) for number in range(1, len(self.planned) + 1))

    def request_id(self, number: int) -> str:
        """Return the name of a look's request: asked again, it is answered from the ledger.

        Parameters
        ----------
        number : int
            Number of the look, from 1 on.

        Returns
        -------
        str
            Name of the request.
        """
        return request_of(self.outcome, number)

    @property
    def level(self) -> float:
        """Probability that the intervals of all looks cover the effect together."""
        return float(1 - sum(look.alpha for look in self.planned))

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as it stands in an access policy.

        Returns
        -------
        dict
            The outcome, and the rows, epsilons, deltas and alphas of the looks.
        """
        return {
            "outcome": self.outcome,
            "rows": [look.rows for look in self.planned],
            "epsilon": [_decimal(look.budget.epsilon) for look in self.planned],
            "delta": [_decimal(look.budget.delta) for look in self.planned],
            "alpha": [_decimal(look.alpha) for look in self.planned],
        }

    @classmethod
    def from_dict(cls, facts: object) -> Looks:
        """Return the plan in an access policy.

        Parameters
        ----------
        facts : mapping
            What `to_dict` returns.

        Returns
        -------
        Looks
            The plan.

        Raises
        ------
        CounterveilError
            A document that is no plan (CV-L040).
        """
        lists = ("rows", *_NUMBERS)
        if not isinstance(facts, Mapping) or set(facts) != {"outcome", *lists}:
            raise refusal(
                "CV-L040b", got="other keys" if isinstance(facts, Mapping) else type(facts).__name__
            )
        found = [facts[name] for name in lists]
        if not all(isinstance(each, Sequence) and not isinstance(each, str) for each in found):
            raise refusal("CV-L040b", got="a key that is no list")
        if len({len(each) for each in found}) != 1:
            raise refusal("CV-L040b", got="lists of different lengths")
        return cls(facts["outcome"], tuple(_look(*numbers) for numbers in zip(*found, strict=True)))


def request_of(outcome: str, number: int) -> str:
    """Return the name of the request of a look at an outcome."""
    return f"look at {outcome}@{number}"


def _decimal(number: Fraction) -> str:
    """Return an exact number, with a decimal point where one is enough."""
    text = f"{Decimal(number.numerator) / Decimal(number.denominator):f}"
    return text if Fraction(text) == number else str(number)


def _look(rows: object, epsilon: Any, delta: Any, alpha: Any) -> Look:
    try:
        return Look(int(str(rows)), Budget(epsilon, delta), exact(alpha, "alpha"))
    except (ValueError, CounterveilError):
        raise refusal("CV-L040b", got="a number that cannot be used") from None


# What may be done about missing values of a private column; a column without a rule must be complete.
DROP, FILL = "drop", "fill"
_MOST_ROWS, _MOST_DIGITS = 10**15, 15
_LONGEST_FILE, _ACCESS_POLICY_LONGEST_NUMBER, _LONGEST_CONDITION = 2**18, 120, 8_000


@frozen
class AccessPolicy:
    """What the account of a data set allows; every column that is not public is private.

    A policy is fixed when an account is registered. Its attributes have the names of its parameters. It has
    at most 10,000 names of 200 characters, and 256 KB as a file.

    Parameters
    ----------
    public : iterable of str, optional
        Columns whose exact values answers may show. Default: none.
    outcomes : iterable of str, optional
        Private columns that may be the outcome of requests whose covariates are public. Default: any private
        column.
    missing : mapping of str to {"drop", "fill"}, optional
        Rules for private columns with missing values. "drop": rows without a value are left out, and which
        rows these are is public; "fill": a constant is put in, and which rows these are is private. Where the
        treatment is private, also
        "drop" for public columns. Default: none; studies of other incomplete columns are refused.
    protects : iterable of {"outcome", "treatment and outcome", "record"}, optional
        What requests may protect. Default: all three.
    methods : iterable of str, optional
        Names of the methods that may run, as they run (not "auto"). Default: all.
    max_epsilon, max_delta : number, optional
        The largest epsilon above 0, and the largest delta from 0 to below 1, of one request. Default: the
        account's total.
    min_rows : int, default 0
        Fewest rows that a request may be about; their number is public.
    min_arm : int, default 0
        Fewest rows of an arm. They are counted where arms are public; otherwise the planned share of the
        study's design counts, and a request without one is refused.
    digits : int, optional
        Significant digits, 1 to 15, of what ``counterveil export`` writes, with intervals rounded outwards.
        Default: all.
    unproved : bool, default False
        Whether forms without a finite-sample guarantee may run.
    person : str, optional
        Column that identifies people with several rows, who are protected with all of them. Default: each row
        is protected by itself.
    cluster : str, optional
        Column that names clusters which are protected as a whole. Not together with `person`. Default: none.
    subsets : iterable of str, optional
        Conditions and periods by which studies may choose rows although they read private columns; who
        belongs to such a subset is then public. Default: none.
    clusters : iterable of str, optional
        Private columns that may name clusters of people; which clusters there are is then public. Default:
        none.
    assigned_clusters : iterable of str, optional
        The same for clusters that lie in one arm each; the arm of each is then public too. Default: none.
    looks : Looks or mapping, optional
        Planned interim looks at an outcome. Default: none.

    Raises
    ------
    CounterveilError
        An argument that cannot be used (CV-L040).

    Examples
    --------
    >>> import counterveil as cv
    >>> policy = cv.drafting.AccessPolicy(public=["treated", "age"], outcomes=["relapse"], max_epsilon="0.5")
    >>> policy.public
    ('age', 'treated')
    >>> cv.drafting.AccessPolicy.from_dict(policy.to_dict()) == policy
    True
    """

    public: tuple[str, ...]
    outcomes: tuple[str, ...] | None
    missing: Mapping[str, str]
    protects: tuple[Unit, ...]
    methods: tuple[str, ...] | None
    max_epsilon: Fraction | None
    max_delta: Fraction | None
    min_rows: int
    min_arm: int
    digits: int | None
    unproved: bool
    person: str | None
    cluster: str | None
    subsets: tuple[str, ...]
    clusters: tuple[str, ...]
    assigned_clusters: tuple[str, ...]
    looks: Looks | None

    def __init__(
        self,
        *,
        public: Iterable[str] = (),
        outcomes: Iterable[str] | None = None,
        missing: Mapping[str, str] | None = None,
        protects: Iterable[str] = tuple(Unit),
        methods: Iterable[str] | None = None,
        max_epsilon: Number | None = None,
        max_delta: Number | None = None,
        min_rows: int = 0,
        min_arm: int = 0,
        digits: int | None = None,
        unproved: bool = False,
        person: str | None = None,
        cluster: str | None = None,
        subsets: Iterable[str] = (),
        clusters: Iterable[str] = (),
        assigned_clusters: Iterable[str] = (),
        looks: Looks | Mapping[str, Any] | None = None,
    ) -> None:
        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        put("public", names(public, "public"))
        put("outcomes", None if outcomes is None else names(outcomes, "outcomes"))
        put("missing", MappingProxyType(_rules(missing)))
        put("protects", _levels(protects))
        put("methods", None if methods is None else names(methods, "methods"))
        put("max_epsilon", _most(max_epsilon, "max_epsilon"))
        put("max_delta", _most(max_delta, "max_delta"))
        put("min_rows", _whole("min_rows", min_rows, 0, _MOST_ROWS))
        put("min_arm", _whole("min_arm", min_arm, 0, _MOST_ROWS))
        put("digits", None if digits is None else _whole("digits", digits, 1, _MOST_DIGITS))
        if not isinstance(unproved, bool):
            raise _invalid("unproved = true or false", repr(unproved))
        put("unproved", unproved)
        put("person", None if person is None else names([person], "person")[0])
        put("cluster", None if cluster is None else names([cluster], "cluster")[0])
        if person is not None and cluster is not None:
            raise _invalid(
                "one unit: a person or a cluster", f"person = {person!r} and cluster = {cluster!r}"
            )
        put("subsets", names(subsets, "subsets", _LONGEST_CONDITION))
        put("clusters", names(clusters, "clusters"))
        put("assigned_clusters", names(assigned_clusters, "assigned_clusters"))
        put("looks", looks if looks is None or isinstance(looks, Looks) else Looks.from_dict(looks))
        public_names = set(self.public)
        looked = () if self.looks is None else (self.looks.outcome,)
        filled = [name for name, rule in self.missing.items() if rule == FILL]
        private = (("an outcome", (*(self.outcomes or ()), *looked)), (f"the rule {FILL!r}", filled))
        for kind, listed in private:
            for name in listed:
                if name in public_names:
                    raise _invalid(f"each column public or private; {kind} is of a private one", repr(name))

    @classmethod
    @lru_cache(maxsize=64)
    def of_study(cls, uses: Uses, *, unproved: bool = False, published: tuple[str, ...] = ()) -> AccessPolicy:
        """Return the access policy that a first request fixes.

        Public is what the request makes public and what was published; all else is private.

        Parameters
        ----------
        uses : Uses
            What the request reads and protects.
        unproved : bool, default False
            Whether forms without a finite-sample guarantee may run.
        published : tuple of str
            Columns that were published before. Default: none.

        Returns
        -------
        AccessPolicy
            The policy.
        """
        public = (*published, *uses.made_public)
        return cls(
            public=public,
            missing=rules_of(uses.treatment, uses.missing, public),
            unproved=unproved,
            person=uses.person,
            cluster=uses.protected_cluster,
            **shown_of(uses),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the access policy as a JSON-ready dictionary; `from_dict` reads it back.

        Returns
        -------
        dict
            The fields by name, without those that are not set.
        """
        facts: dict[str, Any] = {
            "public": list(self.public),
            "protects": [unit.value for unit in self.protects],
            "unproved": self.unproved,
        }
        facts |= {} if self.outcomes is None else {"outcomes": list(self.outcomes)}
        facts |= {} if self.methods is None else {"methods": list(self.methods)}
        facts |= {} if self.person is None else {"person": self.person}
        facts |= {} if self.cluster is None else {"cluster": self.cluster}
        for name in ("subsets", "clusters", "assigned_clusters"):
            facts |= {name: list(getattr(self, name))} if getattr(self, name) else {}
        facts |= {} if self.max_epsilon is None else {"max_epsilon": str(self.max_epsilon)}
        facts |= {} if self.max_delta is None else {"max_delta": str(self.max_delta)}
        for name in ("min_rows", "min_arm", "digits"):
            facts |= {name: getattr(self, name)} if getattr(self, name) else {}
        facts |= {} if self.looks is None else {"looks": self.looks.to_dict()}
        return facts | {"missing": dict(self.missing)}

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> AccessPolicy:
        """Return the access policy in a document.

        Parameters
        ----------
        facts : mapping
            The arguments of `AccessPolicy` by name.

        Returns
        -------
        AccessPolicy
            The policy.

        Raises
        ------
        CounterveilError
            A document that is no access policy (CV-L040).
        """
        if not isinstance(facts, Mapping):
            raise _invalid("a table", type(facts).__name__)
        known = field_names(cls)
        for key in facts:
            if key not in known:
                raise _invalid(f"only the keys {', '.join(known)}", f"the key {shown(key)}")
        return cls(**facts)

    def to_toml(self) -> str:
        """Return the text of an access policy file.

        Returns
        -------
        str
            TOML, which `from_toml` reads back.
        """
        facts = self.to_dict()
        tables = {name: facts.pop(name) for name in ("looks", "missing") if name in facts}
        lines = [f"{key} = {_toml(value)}" for key, value in facts.items()]
        for title, table in tables.items():
            lines += ["", f"[{title}]"] if table else []
            lines += [f"{_toml(name)} = {_toml(value)}" for name, value in table.items()]
        return "\n".join(lines) + "\n"

    @classmethod
    def from_toml(cls, path: str | PathLike[str]) -> AccessPolicy:
        """Return the access policy in a TOML file.

        Parameters
        ----------
        path : path-like
            The file: the arguments of `AccessPolicy` by name, at most 256 KB.

        Returns
        -------
        AccessPolicy
            The policy.

        Raises
        ------
        CounterveilError
            A file that is no access policy (CV-L040).
        """
        try:
            return cls.from_dict(parse_toml(read_text(path, _LONGEST_FILE), exact=True))
        except UnreadableError as error:
            raise _invalid("a TOML file in UTF-8", f"{shown(Path(path).name)}: {error}") from None

    def digest(self) -> str:
        """Return the SHA-256 of the canonical form; equal access policies have equal digests.

        Returns
        -------
        str
            Hexadecimal digits.
        """
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def lines(self) -> list[str]:
        """Return the access policy in words.

        Returns
        -------
        list of str
            One rule a line.
        """
        outcomes = "any private column" if self.outcomes is None else quoted(self.outcomes)
        levels = quoted(unit.value for unit in self.protects)
        left_out = frozenset(self.public).intersection(self.missing)
        said = [f"public columns: {quoted(self.public)}; every other column is private"]
        said.append(f"unit: {unit_words(self.person, self.cluster)}")
        said += [f"public: who belongs to the subset where {subset}" for subset in self.subsets]
        said += [f"public: which {name!r} there are, not who is in which" for name in self.clusters]
        said += [
            f"public: which {name!r} there are and the arm of each, not who is in which"
            for name in self.assigned_clusters
        ]
        if self.public and any(unit.covariates_public for unit in self.protects):
            said.append(f"outcomes protected where covariates are public: {outcomes}")
        if self.looks is not None:
            each = "; ".join(f"{look.rows} rows, {look.budget}" for look in self.looks.planned)
            said.append(f"looks at {self.looks.outcome!r}, no others: {each}")
        said += [f"public: the rows without {name!r}, which may be left out" for name in sorted(left_out)]
        missing = [
            f"{name!r}: {_MEANING[rule]}" for name, rule in self.missing.items() if name not in left_out
        ]
        said.append(f"missing values of private columns: {'; '.join(missing) or 'none may be missing'}")
        most = [] if self.max_epsilon is None else [f"epsilon at most {show(self.max_epsilon)}"]
        most += [] if self.max_delta is None else [f"delta at most {show(self.max_delta)}"]
        most += [f"at least {self.min_rows:,} rows"] if self.min_rows else []
        most += [f"at least {self.min_arm:,} in each arm"] if self.min_arm else []
        methods = "all methods" if self.methods is None else f"methods {quoted(self.methods)}"
        said.append(f"requests: protects {levels}; {methods}; {', '.join(most) or 'no limit per request'}")
        said += [] if self.digits is None else [f"exported numbers: {self.digits} significant digits"]
        return [
            *said,
            f"forms without a finite-sample guarantee: {'ALLOWED' if self.unproved else 'refused'}",
        ]

    def __hash__(self) -> int:
        return hash(self.digest())

    def __reduce__(self) -> tuple[object, ...]:
        return (AccessPolicy.from_dict, (self.to_dict(),))


def shown_of(uses: Uses) -> dict[str, Any]:
    """Return what a study shows of private columns, as arguments of an access policy; nothing with public arms."""
    if uses.unit.treatment_public:
        return {}
    clusters = () if uses.named_cluster is None else (uses.named_cluster,)
    return {"subsets": uses.subsets, "assigned_clusters" if uses.assigned_cluster else "clusters": clusters}


def rules_of(treatment: str, missing: Mapping[str, str], public: Iterable[str]) -> dict[str, str]:
    """Return the missing rules of an access policy: of private columns, and which rows others leave out of the arms.

    Where the treatment is public, so is who is left out of each arm.
    """
    shown = frozenset(public)
    out = treatment not in shown
    return {name: rule for name, rule in missing.items() if name not in shown or (out and rule == DROP)}


def unit_words(person: str | None, cluster: str | None) -> str:
    """Return in words what an account protects: a row, a person or a cluster."""
    if cluster is not None:
        return f"one cluster, by {cluster!r}, with all its rows"
    return "one row" if person is None else f"one person, by {person!r}, with all their rows"


_MEANING = {
    DROP: "left out, which rows those are is public",
    FILL: "filled in, which rows those are is private",
}


def names(given: object, what: str, longest: int = LONGEST_NAME) -> tuple[str, ...]:
    """Return names in a fixed order, each once, or raise CV-L040."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise _invalid(f"{what}: a list of names", f"{what} of type {type(given).__name__}")
    found = list(given)
    if len(found) > MOST_NAMES:
        raise _invalid(f"{what}: at most {MOST_NAMES} names", f"{len(found)} names")
    for name in found:
        if not usable(name, longest):
            raise _invalid(f"{what}: texts of 1 to {longest} characters, not blank", shown(name))
    return tuple(sorted(set(found)))


def quoted(listed: Iterable[str]) -> str:
    """Return names for reading; control characters are escaped."""
    return ", ".join(map(repr, listed)) or "none"


def _rules(missing: object) -> dict[str, str]:
    given = {} if missing is None else missing
    if not isinstance(given, Mapping):
        raise _invalid(
            "missing: a table of columns and their rules", f"missing of type {type(given).__name__}"
        )
    for rule in given.values():
        if not isinstance(rule, str) or rule not in (DROP, FILL):
            raise _invalid(f'missing: "{DROP}" or "{FILL}" for each column', shown(rule))
    return {name: given[name] for name in names(given.keys(), "missing")}


def _levels(protects: object) -> tuple[Unit, ...]:
    try:
        chosen = {Unit.parse(unit) for unit in names(protects, "protects")}
    except ParameterError as error:
        raise _invalid(f"protects: a list of {quoted(map(str, Unit))}", error.got) from None
    if not chosen:
        raise _invalid(f"protects: some of {quoted(map(str, Unit))}", "an empty list")
    return tuple(unit for unit in Unit if unit in chosen)


def _most(value: Any, name: str) -> Fraction | None:
    if value is None:
        return None
    try:
        most = exact(value, name)
    except ParameterError:
        most = Fraction(-1)
    good = most > 0 if name == "max_epsilon" else 0 <= most < 1
    if not good or len(str(most)) > _ACCESS_POLICY_LONGEST_NUMBER:
        raise _invalid(f"{name}: a number above 0 with few digits, and below 1 for a delta", shown(value))
    return most


def _whole(name: str, value: Any, low: int, high: int) -> int:
    """Return a whole number within limits, or raise CV-L040."""
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise _invalid(f"{name}: a whole number, at least {low}", shown(value))
    return value


def _toml(value: Any) -> str:
    # JSON's texts, lists and truth values are TOML's, except for the raw DEL character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _invalid(expected: str, got: str) -> CounterveilError:
    return refusal("CV-L040", expected=expected, got=got)
