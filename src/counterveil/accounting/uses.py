"""What a request uses, to be compared with the charter of its account, and what each planned look may spend."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from counterveil.errors import CounterveilError, refusal, shown
from counterveil.privacy import Budget, Unit, exact

MOST_NAMES = 10_000
LONGEST_NAME = 200
_LISTS = ("covariates", "more_outcomes", "subsets", "subset_columns")


@dataclass(frozen=True, slots=True)
class Uses:
    """What one request uses: columns by role, missing rules, level, method and whether its form is proved."""

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
        return (self.treatment, *self.covariates, *self._beside) if self.unit is Unit.OUTCOME else ()

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
        """Return the facts as they stand in a ledger."""
        own = {each.name: getattr(self, each.name) for each in fields(self)}
        changed = {"unit": self.unit.value, "missing": dict(self.missing)}
        return own | changed | {name: list(getattr(self, name)) for name in _LISTS}

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> Uses:
        """Return what `to_dict` wrote."""
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
    """One planned look.

    Attributes:
        rows: how many rows, or people, are planned to be there.
        budget: what the look spends.
        alpha: the chance that its interval misses; those of all looks add up to one minus the level of all together.
    """

    rows: int
    budget: Budget
    alpha: Fraction


@dataclass(frozen=True, slots=True)
class Looks:
    """The looks at an outcome that a charter plans; no other request that reads the outcome is taken."""

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
        """The names of the requests of all looks, which no other request may have."""
        return tuple(self.request_id(number) for number in range(1, len(self.planned) + 1))

    def request_id(self, number: int) -> str:
        """Return the name of a look's request: asked again, it is answered from the ledger."""
        return request_of(self.outcome, number)

    @property
    def level(self) -> float:
        """The chance that the intervals of all looks cover."""
        return float(1 - sum(look.alpha for look in self.planned))

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as it stands in a charter."""
        return {
            "outcome": self.outcome,
            "rows": [look.rows for look in self.planned],
            "epsilon": [_decimal(look.budget.epsilon) for look in self.planned],
            "delta": [_decimal(look.budget.delta) for look in self.planned],
            "alpha": [_decimal(look.alpha) for look in self.planned],
        }

    @classmethod
    def from_dict(cls, facts: object) -> Looks:
        """Return the plan in a charter, or raise CV-L040."""
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
