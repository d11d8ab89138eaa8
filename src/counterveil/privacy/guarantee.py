"""Privacy budgets as exact rationals, and the guarantee that an answer carries."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from math import exp
from numbers import Rational
from typing import Any, TypeAlias

from counterveil.bounded_reading import written_number
from counterveil.errors import CounterveilError, refusal, shown

# Every float fits; a longer text or a larger exponent would only cost memory and time.
_DIGITS = 400
_LONGEST = 2 * _DIGITS + 2
_LARGEST_EXPONENT = 400
_TOO_LARGE = 10**_DIGITS
# Budgets and draws outside have no use, and squares, sums and floats of those inside are safe.
_LEAST, _MOST = Fraction(1, 10**100), Fraction(10**100)
_LARGEST_DENOMINATOR = _TOO_LARGE // 10**100
# The fractions of draws are quotients of budgets, and may have more digits than a person writes.
_WRITTEN_DIGITS = 1000
_TOO_LONG = 10**_WRITTEN_DIGITS
_WRITTEN = re.compile(rf"-?[0-9]{{1,{_WRITTEN_DIGITS}}}(?:/[0-9]{{1,{_WRITTEN_DIGITS}}})?")

Number: TypeAlias = int | float | str | Decimal | Fraction


def exact(value: Number, name: str) -> Fraction:
    """Return `value` as the rational a person wrote: the float 0.1 becomes 1/10, not its binary neighbour."""
    # Fractions come from arithmetic of ours, which may be longer than what a person writes.
    if type(value) is Fraction and type(value.numerator) is int:
        return value
    try:
        return _short(_fraction(value))
    except Exception:  # whatever somebody else's number does when it is asked for its value
        raise refusal("CV-P003", name=name, digits=_DIGITS, value=value) from None


def _fraction(value: Number) -> Fraction:
    if isinstance(value, bool):
        raise TypeError
    if isinstance(value, Decimal | str):
        return _from_text(value if isinstance(value, str) else str(value))
    if isinstance(value, Rational):
        # Whole numbers of numpy stay 64 bits wide inside a Fraction, and overflow.
        return Fraction(int(value.numerator), int(value.denominator))
    # floats, numpy scalars and other number types that know how to become a float
    as_float = float(value)
    if not math.isfinite(as_float):
        raise ValueError
    return _from_text(repr(as_float))


@lru_cache(maxsize=1024)
def _from_text(text: str) -> Fraction:
    """Return the number in `text`; exponents beyond any use are refused rather than expanded."""
    _, _, exponent = text.lower().partition("e")
    if len(text) > _LONGEST or (exponent and abs(written_number(exponent)) > _LARGEST_EXPONENT):
        raise ValueError
    return written_number(text)


def _short(value: Fraction) -> Fraction:
    if abs(value.numerator) >= _TOO_LARGE or value.denominator >= _TOO_LARGE:
        raise ValueError
    return value


def written(value: Fraction) -> str:
    """Return a fraction as the text that `read_written` reads; one of more than a thousand digits raises CV-B007."""
    if abs(value.numerator) >= _TOO_LONG or value.denominator >= _TOO_LONG:
        raise _beyond("a fraction has too many digits", f"more than {_WRITTEN_DIGITS} digits")
    return str(value)


def read_written(text: object) -> Fraction:
    """Return the fraction that `written` wrote; any other text raises CV-B007, however long it is."""
    if not isinstance(text, str) or not _WRITTEN.fullmatch(text) or text.endswith("/0"):
        raise _beyond("this is not a fraction in the ledger's format", shown(text))
    try:
        return Fraction(text)
    except ZeroDivisionError:
        raise _beyond("this is not a fraction in the ledger's format", "a denominator of zero") from None


def _beyond(problem: str, got: str) -> CounterveilError:
    return refusal("CV-B007", problem=problem, written_digits=_WRITTEN_DIGITS, got=got)


@dataclass(frozen=True, slots=True)
class Budget:
    """An exact pair (epsilon, delta) of differential privacy.

    Parameters
    ----------
    epsilon : int, float, str, Decimal or Fraction
        Privacy loss, above 0. A float is the number a person wrote: 0.1 becomes 1/10.
    delta : int, float, str, Decimal or Fraction, default 0
        Probability with which the loss may be exceeded, in [0, 1); far below one over the number of rows.

    Attributes
    ----------
    epsilon : Fraction
        Exact privacy loss.
    delta : Fraction
        Exact probability.

    Raises
    ------
    CounterveilError
        Something that is no number: CV-P003. An epsilon that is not positive: CV-P004. A delta outside [0,
        1): CV-P005. A budget outside the supported range: CV-B007.

    Notes
    -----
    A mechanism M is (epsilon, delta)-differentially private if P(M(D) in S) <= exp(epsilon) P(M(D') in S) +
    delta for all neighbouring data sets D and D' and all sets S of answers [1]_.

    References
    ----------
    .. [1] Dwork, C. and Roth, A. (2014). The algorithmic foundations of differential privacy. Foundations and
       Trends in Theoretical Computer Science 9, 211-407.

    Examples
    --------
    >>> import counterveil as cv
    >>> budget = cv.Budget(epsilon=0.1, delta=1e-6)
    >>> print(budget)
    epsilon 0.1, delta 1e-06
    >>> budget.epsilon, budget.pure
    (Fraction(1, 10), False)
    """

    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: Number, delta: Number = 0) -> None:
        object.__setattr__(self, "epsilon", exact(epsilon, "epsilon"))
        object.__setattr__(self, "delta", exact(delta, "delta"))
        if self.epsilon.numerator <= 0:
            raise refusal("CV-P004", epsilon=epsilon)
        if not 0 <= self.delta.numerator < self.delta.denominator:
            raise refusal("CV-P005", delta=delta)

        if not _LEAST <= self.epsilon <= _MOST or 0 < self.delta < _LEAST:
            raise _beyond("the budget is outside the supported range", str(self))
        if max(self.epsilon.denominator, self.delta.denominator) >= _LARGEST_DENOMINATOR:
            raise _beyond("the budget has too many digits", str(self))

    @property
    def pure(self) -> bool:
        """Whether delta is zero."""
        return self.delta.numerator == 0

    def check_rows(self, rows: int) -> None:
        """Raise an error where delta permits publishing one of so many rows.

        Parameters
        ----------
        rows : int
            Number of rows, public.

        Raises
        ------
        CounterveilError
            A delta of one over `rows` or more: CV-P006.
        """
        if self.delta * rows >= 1:
            raise refusal("CV-P006", rows=rows, advised=100 * rows, delta=show(self.delta))

    def to_dict(self) -> dict[str, str]:
        """Return the exact rationals as text.

        Returns
        -------
        dict of str to str
            ``epsilon`` and ``delta``, such as ``"1/10"``.
        """
        return {"epsilon": written(self.epsilon), "delta": written(self.delta)}

    @classmethod
    def from_dict(cls, facts: dict[str, str]) -> Budget:
        """Return the budget that `to_dict` wrote.

        Parameters
        ----------
        facts : dict of str to str
            ``epsilon`` and ``delta``.

        Returns
        -------
        Budget
            Equal to the one that was written.
        """
        return cls(facts["epsilon"], facts["delta"])

    def __str__(self) -> str:
        return amounts(self.epsilon, self.delta)


def amounts(epsilon: Fraction, delta: Fraction) -> str:
    """Return both numbers of a budget for display; a delta of zero is left out."""
    return f"epsilon {show(epsilon)}" + (f", delta {show(delta)}" if delta else "")


def show(value: Fraction, digits: int = 6) -> str:
    """Return a rational as short decimal text, for display only."""
    try:
        return f"{float(value):.{digits}g}"
    except OverflowError:
        return f"{Decimal(value.numerator) / Decimal(value.denominator):.{digits}g}"


# What a release costs, as events that can be composed.
#
# An event says how private one draw was, not what it measured. A `Charge` is what one request
# costs: the face value that was requested, and the draws it pays for.


@dataclass(frozen=True, slots=True)
class PureEvent:
    """Any release that is epsilon-differentially private.

    Attributes
    ----------
    epsilon : Fraction
        Privacy loss.
    """

    epsilon: Fraction


@dataclass(frozen=True, slots=True)
class LaplaceEvent:
    """Laplace noise on one number; vectors are pure events.

    Attributes
    ----------
    epsilon : Fraction
        Sensitivity over the scale of the noise.
    """

    epsilon: Fraction


@dataclass(frozen=True, slots=True)
class GaussianEvent:
    """Gaussian noise on a number or a vector.

    Attributes
    ----------
    mu : Fraction
        l2 sensitivity over the standard deviation of the noise.
    """

    mu: Fraction


@dataclass(frozen=True, slots=True)
class ResponseEvent:
    """Randomized response.

    Attributes
    ----------
    epsilon : Fraction
        Privacy loss.
    categories : int
        Number of values that are answered.
    """

    epsilon: Fraction
    categories: int


@dataclass(frozen=True, slots=True)
class ApproximateEvent:
    """Any release that is (epsilon, delta)-differentially private and about which nothing more is known.

    Attributes
    ----------
    epsilon : Fraction
        Privacy loss.
    delta : Fraction
        Probability with which it may be exceeded.
    """

    epsilon: Fraction
    delta: Fraction


Event: TypeAlias = PureEvent | LaplaceEvent | GaussianEvent | ResponseEvent | ApproximateEvent

_KINDS: dict[str, type[Event]] = {
    "pure": PureEvent,
    "laplace": LaplaceEvent,
    "gaussian": GaussianEvent,
    "response": ResponseEvent,
    "approximate": ApproximateEvent,
}
_NAMES: dict[type[Event], str] = {kind: name for name, kind in _KINDS.items()}


def pure_epsilon(event: Event) -> Fraction | None:
    """Return the epsilon of a pure event, None for one that is not pure."""
    if isinstance(event, PureEvent | LaplaceEvent | ResponseEvent):
        return event.epsilon
    return None


def event_to_dict(event: Event) -> dict[str, str | int]:
    """Return the event as JSON-ready facts; rationals become text."""
    facts: dict[str, str | int] = {"kind": _NAMES[type(event)]}
    for name in event.__dataclass_fields__:
        value = getattr(event, name)
        facts[name] = written(value) if isinstance(value, Fraction) else value
    return facts


def event_from_dict(facts: dict[str, str | int]) -> Event:
    """Return the event written by `event_to_dict`."""
    fields = dict(facts)
    kind = _KINDS.get(str(fields.pop("kind", "")))
    if kind is None:
        raise refusal("CV-X001", kinds=sorted(_KINDS), got=repr(facts.get("kind")))
    values: dict[str, Any] = {
        name: read_written(value) if isinstance(value, str) else value for name, value in fields.items()
    }
    return kind(**values)


@dataclass(frozen=True, slots=True)
class Charge:
    """What one request costs.

    Attributes
    ----------
    face : Budget
        Epsilon and delta that were requested.
    events : tuple of PureEvent, LaplaceEvent, GaussianEvent, ResponseEvent or ApproximateEvent
        The draws that it pays for, from which several requests are composed.
    """

    face: Budget
    events: tuple[Event, ...]

    def to_dict(self) -> dict[str, object]:
        """Return the charge as JSON-ready facts.

        Returns
        -------
        dict
            ``face`` and ``events``; rationals are text.
        """
        return {"face": self.face.to_dict(), "events": [event_to_dict(event) for event in self.events]}

    @classmethod
    def from_dict(cls, facts: dict[str, Any]) -> Charge:
        """Return the charge that `to_dict` wrote.

        Parameters
        ----------
        facts : dict
            ``face`` and ``events``.

        Returns
        -------
        Charge
            Equal to the one that was written.
        """
        return cls(
            Budget.from_dict(facts["face"]), tuple(event_from_dict(event) for event in facts["events"])
        )


class Unit(StrEnum):
    """What of a row is protected, as given by ``protects=``; each protects what those before it protect.

    Attributes
    ----------
    OUTCOME : str
        "outcome": outcomes are private, treatments and covariates public.
    TREATMENT_AND_OUTCOME : str
        "treatment and outcome": both are private, covariates public.
    RECORD : str
        "record": everything about a person is private but that a row is there.

    Examples
    --------
    >>> from counterveil.privacy import Unit
    >>> Unit.parse("record").covariates_public
    False
    """

    OUTCOME = "outcome"
    TREATMENT_AND_OUTCOME = "treatment and outcome"
    RECORD = "record"

    @property
    def treatment_public(self) -> bool:
        """Whether the treatment of each row, and so the size of each arm, is public."""
        return self is Unit.OUTCOME

    @property
    def covariates_public(self) -> bool:
        """Whether the covariates of each row are public."""
        return self is not Unit.RECORD

    @classmethod
    def parse(cls, value: object) -> Unit:
        """Return the unit of a name.

        Parameters
        ----------
        value : {"outcome", "treatment and outcome", "record"}
            What is protected.

        Returns
        -------
        Unit
            The member of that name.

        Raises
        ------
        CounterveilError
            Another value: CV-P001.
        """
        if isinstance(value, str) and value in {member.value for member in cls}:
            return cls(value)
        raise refusal("CV-P001", value=value)


class Protected(StrEnum):
    """Whose rows are protected together.

    Attributes
    ----------
    ROW : str
        "row": each row by itself.
    PERSON : str
        "person": all rows of a person.
    CLUSTER : str
        "cluster": all rows of a cluster.
    """

    ROW = "row"
    PERSON = "person"
    CLUSTER = "cluster"


class Adjacency(StrEnum):
    """Neighbouring data sets; the number of rows, people or clusters, and their order never change.

    Attributes
    ----------
    CHANGE_OUTCOME : str
        "change-one-outcome": the outcome of one row differs.
    REPLACE_RECORD : str
        "replace-one-record": one row is any other.
    CHANGE_OUTCOMES_OF_ROW : str
        "change-outcomes-of-one-row": several outcomes of one row differ.
    CHANGE_OUTCOMES_OF_PERSON : str
        "change-outcomes-of-one-person": outcomes in any rows of one person differ.
    REPLACE_PERSON : str
        "replace-all-rows-of-one-person": one person with all rows is any other.
    CHANGE_OUTCOMES_OF_CLUSTER : str
        "change-outcomes-of-one-cluster": outcomes in any rows of one cluster differ.
    CHANGE_PAIR : str
        "change-treatment-and-outcome-of-one-row": both of one row differ.
    REPLACE_CLUSTER : str
        "replace-all-rows-of-one-cluster": one cluster with all rows is any other.
    """

    CHANGE_OUTCOME = "change-one-outcome"
    REPLACE_RECORD = "replace-one-record"
    CHANGE_OUTCOMES_OF_ROW = "change-outcomes-of-one-row"
    CHANGE_OUTCOMES_OF_PERSON = "change-outcomes-of-one-person"
    REPLACE_PERSON = "replace-all-rows-of-one-person"
    CHANGE_OUTCOMES_OF_CLUSTER = "change-outcomes-of-one-cluster"
    CHANGE_PAIR = "change-treatment-and-outcome-of-one-row"
    REPLACE_CLUSTER = "replace-all-rows-of-one-cluster"

    @classmethod
    def of(cls, unit: Unit, whose: Protected, several: bool = False) -> Adjacency:
        """Return the adjacency that protects a unit of one row, person or cluster.

        Parameters
        ----------
        unit : Unit
            What of a row is protected.
        whose : Protected
            Whose rows are protected together.
        several : bool, default False
            Whether a row has several private outcomes.

        Returns
        -------
        Adjacency
            The relation between neighbouring data sets.
        """
        if several and (unit, whose) == (Unit.OUTCOME, Protected.ROW):
            return cls.CHANGE_OUTCOMES_OF_ROW
        return _NEIGHBOURS[unit, whose]

    @property
    def whose(self) -> Protected:
        """Whose rows it protects."""
        found = (whose for (_, whose), adjacency in _NEIGHBOURS.items() if adjacency is self)
        return next(found, Protected.ROW)

    @property
    def sentence(self) -> str:
        """The relation in words."""
        said = {
            Adjacency.CHANGE_OUTCOME: "they differ in the outcome of one row",
            Adjacency.CHANGE_OUTCOMES_OF_ROW: "they differ in the outcomes of one row, in any of its outcome columns",
            Adjacency.REPLACE_RECORD: "one row is replaced by any other",
            Adjacency.CHANGE_OUTCOMES_OF_PERSON: "they differ in the outcomes of one person, in any of their rows",
            Adjacency.REPLACE_PERSON: "one person with all their rows is replaced by any other",
            Adjacency.CHANGE_OUTCOMES_OF_CLUSTER: "they differ in the outcomes of one cluster, in any of its rows",
            Adjacency.CHANGE_PAIR: "they differ in the treatment and the outcome of one row",
            Adjacency.REPLACE_CLUSTER: "one cluster with all its rows is replaced by any other",
        }
        return f"two data sets are neighbours if {said[self]}"


_NEIGHBOURS = {
    (Unit.OUTCOME, Protected.ROW): Adjacency.CHANGE_OUTCOME,
    (Unit.RECORD, Protected.ROW): Adjacency.REPLACE_RECORD,
    (Unit.OUTCOME, Protected.PERSON): Adjacency.CHANGE_OUTCOMES_OF_PERSON,
    (Unit.RECORD, Protected.PERSON): Adjacency.REPLACE_PERSON,
    (Unit.OUTCOME, Protected.CLUSTER): Adjacency.CHANGE_OUTCOMES_OF_CLUSTER,
    (Unit.TREATMENT_AND_OUTCOME, Protected.ROW): Adjacency.CHANGE_PAIR,
    (Unit.RECORD, Protected.CLUSTER): Adjacency.REPLACE_CLUSTER,
}


class Estimand(StrEnum):
    """Population over which an effect is averaged.

    Attributes
    ----------
    ATE : str
        Everyone in the study: E[Y(1) - Y(0)].
    ATT : str
        Those who were treated: E[Y(1) - Y(0) | T = 1].
    ATC : str
        Those who were not treated: E[Y(1) - Y(0) | T = 0].
    ATO : str
        Everyone, weighted by overlap e(X) (1 - e(X)), e(X) being the probability of treatment.

    Examples
    --------
    >>> from counterveil.privacy import Estimand
    >>> Estimand.parse("att").sentence
    'average effect of the treatment on those who received it'
    """

    ATE = "ATE"
    ATT = "ATT"
    ATC = "ATC"
    ATO = "ATO"

    @classmethod
    def parse(cls, value: object) -> Estimand:
        """Return the estimand of a name.

        Parameters
        ----------
        value : {"ATE", "ATT", "ATC", "ATO"}
            Name, in upper or lower case.

        Returns
        -------
        Estimand
            The member of that name.

        Raises
        ------
        CounterveilError
            Another value: CV-P002.
        """
        if isinstance(value, str) and value.upper() in {member.value for member in cls}:
            return cls(value.upper())
        raise refusal("CV-P002", value=value)

    @property
    def sentence(self) -> str:
        """The estimand in words."""
        return self.sentence_of(None)

    def sentence_of(self, everyone: str | None) -> str:
        """Return the estimand in words.

        Parameters
        ----------
        everyone : str or None
            Who is in the study, where they are not simply people.

        Returns
        -------
        str
            A sentence without its full stop.
        """
        return {
            Estimand.ATE: f"average effect of the treatment on {everyone or 'everyone in the study'}",
            Estimand.ATT: "average effect of the treatment on those who received it",
            Estimand.ATC: "average effect the treatment would have had on those who did not receive it",
            Estimand.ATO: "overlap-weighted average effect: people count by e(1-e), e being their "
            "chance of treatment",
        }[self]


SIMULATED = "SIMULATED, NOT A PRIVATE RELEASE"


class Proof(StrEnum):
    """How far a guarantee is proved.

    Attributes
    ----------
    FINITE_SAMPLE : str
        "finite-sample": for any number of rows.
    DECLARED : str
        "declared bounds": for any number of rows, if the bounds hold that the author of a method declares.
    ASYMPTOTIC : str
        "asymptotic": for large numbers of rows only.
    REFUTED : str
        "refuted": a counterexample is known.
    NONE : str
        "none": the noise came from a seed and can be subtracted.
    """

    FINITE_SAMPLE = "finite-sample"
    DECLARED = "declared bounds"
    ASYMPTOTIC = "asymptotic"
    REFUTED = "refuted"
    NONE = "none"


# From here on a guarantee says what its epsilon means: odds multiplied by 22,026 and more.
LARGE_EPSILON = 10
# Factors beyond are not written out, and logarithms beyond are no doubles.
_READABLE, _LARGEST_LOG = 1e9, 700.0


@dataclass(frozen=True, slots=True)
class Guarantee:
    """What is protected, how strongly, and where that is proved.

    Attributes
    ----------
    epsilon : Fraction
        Exact privacy loss.
    delta : Fraction
        Exact probability with which it may be exceeded.
    unit : Unit
        What of a row is protected.
    proof : Proof
        How far the guarantee is proved.
    public : tuple of str
        What is taken as public, in sentences.
    pages : tuple of str
        Pages of the proof, relative to ``src/counterveil/``.
    remarks : tuple of str
        Anything else that a reader must know.
    whose : Protected
        Whether a row, or a person or cluster with all rows, is protected.
    several : bool
        Whether a row has several private outcomes: before and after, or two parts of a ratio.

    Notes
    -----
    Whatever else a reader knows, an answer changes their odds of anything about one person by at most a
    factor of exp(epsilon), except with probability about delta.

    Examples
    --------
    >>> import counterveil as cv
    >>> trial = cv.datasets.lalonde()
    >>> noise = cv.SeededNoise(1)
    >>> result = cv.ate(trial.frame, trial.study, protects="outcome", epsilon=1, noise=noise)
    >>> result.guarantee.unit.value, result.guarantee.proof.value
    ('outcome', 'none')
    >>> result.guarantee.adjacency.sentence
    'two data sets are neighbours if they differ in the outcome of one row'
    """

    epsilon: Fraction
    delta: Fraction
    unit: Unit
    proof: Proof
    public: tuple[str, ...]
    pages: tuple[str, ...]
    remarks: tuple[str, ...] = ()
    whose: Protected = Protected.ROW  # a row alone, or a person or a cluster with all their rows
    # Whether a row has several private outcomes: before and after, or two parts of a ratio.
    several: bool = False

    @property
    def adjacency(self) -> Adjacency:
        """Which data sets are neighbours."""
        return Adjacency.of(self.unit, self.whose, self.several)

    @property
    def odds_factor(self) -> float | None:
        """Factor by which odds about one person may change, where epsilon is above 10; else None."""
        return exp(min(float(self.epsilon), _LARGEST_LOG)) if self.epsilon > LARGE_EPSILON else None

    @property
    def large(self) -> str:
        """What a large epsilon means, in words; empty where it is not large."""
        factor = self.odds_factor
        if factor is None:
            return ""
        said = f"{factor:,.0f}" if factor < _READABLE else f"{factor:.0e}"
        return f"a LARGE epsilon: an attacker's odds about one person may change by a factor of up to {said}"

    @property
    def warning(self) -> str | None:
        """First line of every rendering, if the guarantee is not proved; else None."""
        return {
            Proof.FINITE_SAMPLE: None,
            Proof.DECLARED: "BOUNDS OF THE AUTHOR: the guarantee holds if the bounds do that the method declares",
            Proof.ASYMPTOTIC: "NO FINITE-SAMPLE GUARANTEE: the privacy claim is asymptotic only",
            Proof.REFUTED: "NO GUARANTEE: the privacy claim of this form is refuted by a counterexample",
            Proof.NONE: SIMULATED,
        }[self.proof]

    def sentence(self) -> str:
        """Return the guarantee in words.

        Returns
        -------
        str
            Epsilon, delta, proof and neighbours.
        """
        if self.proof is Proof.NONE:
            return f"{SIMULATED}: the noise came from a seed and can be subtracted"
        kind = "pure " if self.delta == 0 else ""
        delta = "" if self.delta == 0 else f", delta = {show(self.delta)}"
        return (
            f"{kind}differential privacy with epsilon = {show(self.epsilon)}{delta}, {self.proof.value}: "
            f"{self.adjacency.sentence}" + (f"; {self.large}" if self.large else "")
        )

    def to_dict(self) -> dict[str, object]:
        """Return the guarantee as JSON-ready facts.

        Returns
        -------
        dict
            ``epsilon`` and ``delta`` (exact, as text), ``protects``, ``adjacency``, ``proof``, ``public``,
            ``pages``, ``remarks``, ``sentence``; for a large epsilon ``odds_factor``.
        """
        return {
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
            "protects": self.unit.value,
            "adjacency": self.adjacency.value,
            "proof": self.proof.value,
            "public": list(self.public),
            "pages": list(self.pages),
            "remarks": list(self.remarks),
            "sentence": self.sentence(),
        } | ({} if self.odds_factor is None else {"odds_factor": self.odds_factor})

    @classmethod
    def from_dict(cls, facts: dict[str, Any]) -> Guarantee:
        """Return the guarantee that `to_dict` wrote.

        Parameters
        ----------
        facts : dict
            What `to_dict` returned.

        Returns
        -------
        Guarantee
            Equal to the one that was written.
        """
        return cls(
            epsilon=Fraction(facts["epsilon"]),
            delta=Fraction(facts["delta"]),
            unit=Unit(facts["protects"]),
            proof=Proof(facts["proof"]),
            public=tuple(facts["public"]),
            pages=tuple(facts["pages"]),
            remarks=tuple(facts["remarks"]),
            several=facts["adjacency"] == Adjacency.CHANGE_OUTCOMES_OF_ROW,
            whose=Adjacency(facts["adjacency"]).whose,
        )
