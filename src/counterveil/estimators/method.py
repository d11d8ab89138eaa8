"""What a method of estimation is: from public numbers to a plan of releases, and from these to an estimate.

A method sees two things, in turn. First what is public of the rows (`PublicData`) and the question: from
these it decides what to release, with which bounds, and for which parts of the privacy budget (the *plan*).
The result is a `Prepared`. Then, at the *gate*, which adds the noise and lets each planned release through
once, it receives released numbers whose noise has a known distribution, and makes the estimate and its error
of them.

A method never sees a private row or an exact sum: what is summed of rows, and how far one row moves it, is
declared in `rows` and proved on the pages that `Prepared.pages` names. Everything after the gate is
post-processing, so that a mistake in an estimate cannot cost privacy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from fractions import Fraction
from typing import Any, ClassVar, Generic, TypeVar

from counterveil.data.domains import Label
from counterveil.errors import refusal
from counterveil.inference.arm_means import with_rare_events
from counterveil.inference.uncertainty import Uncertainty
from counterveil.privacy import Estimand, Proof, Unit
from counterveil.privacy.caveats import Fact, Target
from counterveil.privacy.provenance import AnyPremise, DeclaredBound
from counterveil.results.answering import Facts, Stored, answer_request
from counterveil.results.question import Question, causal_caveats
from counterveil.results.result import Result
from counterveil.rows.public import PublicData
from counterveil.rows.statistic import Statistic, length_on_made_up_rows
from counterveil.session import BaseSession, Gate, Kind, Plan, Released

# Covariant, as whoever prepares a MeasureResult prepares a Result.
Answer = TypeVar("Answer", bound=Stored, covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared(Generic[Answer]):
    """A method that has looked at public numbers: what it will release, at which price, and what it makes of it.

    Attributes
    ----------
    question : Question
        The question as it is answered, with the mechanism that was chosen.
    plan : Plan
        Names of releases and the part of the budget that each pays.
    estimate : callable
        From the gate, at which declarations of `counterveil.rows` release their numbers, to the fields of the
        answer.
    answer : type, default Result
        Class of the answer.
    pages : tuple of str
        Proof pages of the bounds.
    mechanisms : tuple of str, optional
        Mechanisms of the noise; by default that of the question.
    remarks : tuple of Premise, PublicPrediction or str
        What the guarantee rests on beside its pages.
    proof : Proof
        Whether the guarantee holds in finite samples.
    reference : label, optional
        The period of an event study whose pattern of missing values is public.
    description : dict
        What the ledger writes down beside the question.
    finish : callable, optional
        What is made of the stored answer, from released numbers alone.
    """

    question: Question
    plan: Plan
    estimate: Callable[[Gate], Facts | Answer]
    answer: type[Any] = Result
    pages: str | tuple[str, ...] = ()
    mechanisms: tuple[str, ...] | None = None
    remarks: tuple[AnyPremise, ...] = ()
    proof: Proof = Proof.FINITE_SAMPLE
    reference: Label | None = None
    description: dict[str, Any] = field(default_factory=dict)
    finish: Callable[[Answer], Answer] | None = None

    def run(self, session: BaseSession) -> Answer:
        """Return the answer: reserve the plan, release at the gate, store; a repeated request costs nothing.

        Parameters
        ----------
        session : Session
            The open session whose account is charged.

        Returns
        -------
        Result or another answer
            An object of the class `answer`, with `finish` applied.
        """
        settled: Answer = answer_request(
            self.answer,
            session,
            question=self.question,
            plan=self.plan,
            compute=self.estimate,
            pages=self.pages,
            remarks=self.remarks,
            proof=self.proof,
            mechanisms=self.mechanisms,
            reference=self.reference,
            said=self.description,
        )
        return settled if self.finish is None else self.finish(settled)


# Letters of the name of a method.
LONGEST_NAME = 60
# From what is public of rows, and a question, to what will be released.
Prepare = Callable[[PublicData, Any], Prepared[Answer]]


def runs(prepare: Prepare[Answer]) -> Callable[[BaseSession, Question], Answer]:
    """Return the function that answers a question of a session by a method."""

    def answer(session: BaseSession, question: Question) -> Answer:
        return prepare(PublicData(session, question.unit), question).run(session)

    return answer


Releases = Mapping[str, Any]  # a Released or a ReleasedVector by the name of its statistic


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a method makes of released numbers: an effect, and what its interval is computed from.

    The interval is ``{e : |effect - e| <= h}`` with ``P(|N(b, v) + X| > h) = 1 - level``, where v is the
    sampling variance with an allowance for the noise that it was released with, X the noise of the effect and
    b the bias.

    Attributes
    ----------
    effect : Released
        The released effect, treated minus control, in the outcome's units.
    variance : Released or float
        Sampling variance of the effect, in the outcome's units squared: released, or a public upper bound.
    largest_variance : float, optional
        Largest value that the variance can have at all; it stands in where noise hides the variance. Needed
        where `variance` is released.
    bias : float, default 0
        Bound on the bias of the effect, in the outcome's units, by which the interval is widened.
    details : mapping of str to float or str
        Further public or released numbers that the answer shows.

    Examples
    --------
    >>> import counterveil as cv
    >>> list(cv.methods.Estimate.__dataclass_fields__)[:2]
    ['effect', 'variance']
    """

    effect: Released
    variance: Released | float
    largest_variance: float | None = None
    bias: float = 0.0
    details: Mapping[str, float | str] = field(default_factory=dict)

    def uncertainty(self) -> Uncertainty:
        """Return the error of the effect: sampling, noise and bias together.

        Returns
        -------
        Uncertainty
            What intervals and p-values are computed from.
        """
        if not isinstance(self.variance, Released):
            cap = float(self.variance)
            return Uncertainty(
                noise=self.effect.noise,
                variance=cap,
                variance_cap=cap,
                variance_noise=None,
                extra=0.0,
                bias=self.bias,
            )
        if self.largest_variance is None:
            raise refusal("CV-P843")
        return Uncertainty(
            noise=self.effect.noise,
            variance=float(self.variance),
            variance_cap=float(self.largest_variance),
            variance_noise=self.variance.noise,
            extra=0.0,
            bias=self.bias,
        )


class AdaptiveMethod(ABC):
    """A method whose releases may depend on one another: from public numbers to a plan, from the gate to an answer.

    The package's own methods are of this kind; `Method` is the simpler one, which declares all its statistics
    before.

    Attributes
    ----------
    name : str
        What answers, ledgers and access policies call the method; not one of the package's own names.
    protects : tuple of str
        Levels of protection for which the bounds hold: "outcome", "treatment and outcome", "record".
    estimands : tuple of str
        Whose average effect it can estimate. Default: ("ATE",).

    See Also
    --------
    Method : Declares all statistics before anything is released.
    """

    name: str
    protects: tuple[str, ...]
    estimands: tuple[str, ...] = ("ATE",)

    @abstractmethod
    def prepare(self, public: PublicData, question: Any) -> Prepared[Any]:
        """Return the method with its releases planned, from public numbers alone; nothing is spent here.

        Parameters
        ----------
        public : PublicData
            What is public of the rows.
        question : Question
            Budget, level, estimand and mechanism.

        Returns
        -------
        Prepared
            The plan, and what is made of its releases at the gate.
        """

    def settings(self) -> dict[str, Any]:
        """Return the fields of a method that is a dataclass, as the ledger records them.

        Returns
        -------
        dict
            Plain values by name.

        Raises
        ------
        CounterveilError
            A field that is not plain: CV-P844.
        """
        described: Any = self
        names = [each.name for each in fields(described)] if is_dataclass(described) else []
        return {name: _plain(getattr(self, name), name) for name in names}


class Method(AdaptiveMethod):
    """A way to estimate an effect, to be passed as ``cv.ate(..., method=MyMethod())``.

    Subclass it, say what it `protects`, declare the `statistics` that it wants with their bounds, and write
    `estimate`. The answer is charged, stored, resumed and repeated by its request id as those of the
    package's own methods are; its guarantee says that the bounds are declared by their author. `counterveil
    audit module:MyMethod` searches for data sets that refute them.

    Attributes
    ----------
    name : str
        What answers, ledgers and access policies call the method; not one of the package's own names.
    protects : tuple of str
        Levels of protection for which the bounds hold: "outcome", "treatment and outcome", "record".
    estimands : tuple of str
        Whose average effect it can estimate. Default: ("ATE",).
    interval_target : Target, optional
        `Target.OWN_QUANTITY` where its interval is not for an average effect, as of trimmed means; every
        rendering of the answer then says so first. Default: None.

    See Also
    --------
    Statistic : Declares a sum over private rows and its bound.
    counterveil.ate : Runs a method.

    Notes
    -----
    Fields of a method that is a dataclass are its settings: plain numbers, texts and tuples of them, which
    the ledger records. `prepare` builds plan and answer of `statistics` and `estimate`; where one release
    depends on another, subclass `AdaptiveMethod` and write it yourself, as the package's own methods do.

    Examples
    --------
    The difference in means of a trial, with the variance that it can have at most:

    >>> from dataclasses import dataclass
    >>> from fractions import Fraction
    >>> import counterveil as cv
    >>> @dataclass(frozen=True)
    ... class Contrast(cv.methods.Statistic):
    ...     bound: Fraction
    ...
    ...     def value(self, rows):
    ...         total = [int(rows.outcome[rows.arm == arm].sum()) for arm in (0, 1)]
    ...         size = [int((rows.arm == arm).sum()) for arm in (0, 1)]
    ...         return (Fraction(total[1], size[1]) - Fraction(total[0], size[0])) * rows.outcome_unit
    >>> class PlainDifference(cv.methods.Method):
    ...     name = "plain difference"
    ...     protects = ("outcome",)
    ...
    ...     def statistics(self, public):
    ...         return {"effect": Contrast(bound=public.width / min(public.arm_sizes))}
    ...
    ...     def estimate(self, released, public):
    ...         largest = sum(float(public.width) ** 2 / (4 * size) for size in public.arm_sizes)
    ...         return cv.methods.Estimate(effect=released["effect"], variance=largest)
    >>> data = cv.datasets.simulated_trial(n=2000, effect=0.3)
    >>> noise = cv.SeededNoise(1)
    >>> result = cv.ate(
    ...     data.frame, data.study, protects="outcome", epsilon=1, method=PlainDifference(), noise=noise
    ... )
    >>> round(result.estimate, 1)
    0.3
    """

    interval_target: ClassVar[Target | None] = None

    @abstractmethod
    def statistics(self, public: PublicData) -> Mapping[str, Statistic]:
        """Return what is to be released, by name, from what is public.

        Parameters
        ----------
        public : PublicData
            Study, number of rows and, where they are public, columns and sizes of arms.

        Returns
        -------
        mapping of str to Statistic
            Each with its bound; names are those of `released` in `estimate`.
        """

    @abstractmethod
    def estimate(self, released: Releases, public: PublicData) -> Estimate:
        """Return the effect and its error from the released numbers.

        Parameters
        ----------
        released : mapping of str to Released or ReleasedVector
            Numbers with noise, and its distribution, by the names of `statistics`.
        public : PublicData
            Study, number of rows and, where they are public, columns and sizes of arms.

        Returns
        -------
        Estimate
            The effect with its sampling variance.
        """

    def shares(self, public: PublicData) -> Mapping[str, Fraction]:
        """Return the part of the budget that each statistic pays; by default equal parts.

        Parameters
        ----------
        public : PublicData
            Study, number of rows and, where they are public, columns and sizes of arms.

        Returns
        -------
        mapping of str to Fraction
            Positive parts that add up to one, by the names of `statistics`: of epsilon, or of the squared mu
            of Gaussian noise.
        """
        names = list(self.statistics(public))
        return dict.fromkeys(names, Fraction(1, max(len(names), 1)))

    def not_covered(self, public: PublicData, estimand: Estimand) -> tuple[Fact, ...]:
        """Return what the interval does not cover: by default confounding, unless the study is a trial.

        Parameters
        ----------
        public : PublicData
            What is public of the rows.
        estimand : Estimand
            Whose effect is asked for.

        Returns
        -------
        tuple of Caveat
            Caveats that every rendering of the answer shows.
        """
        return causal_caveats(public.study, estimand)

    def prepare(self, public: PublicData, question: Question) -> Prepared[Any]:
        """Return the method with its releases planned, from public numbers alone; nothing is spent here.

        Parameters
        ----------
        public : PublicData
            What is public of the rows.
        question : Question
            Budget, level, estimand and mechanism.

        Returns
        -------
        Prepared
            The plan and what is made of its releases.
        """
        statistics = dict(self.statistics(public))
        bounds = {name: statistic.declared_bound() for name, statistic in statistics.items()}
        shares = dict(self.shares(public))
        _check_shares(self.name, shares, statistics)
        lengths = {name: length_on_made_up_rows(statistic, public) for name, statistic in statistics.items()}
        plan = Plan.split(question.budget, shares, question.mechanism, _kinds(statistics, question.mechanism))

        def estimate(gate: Gate) -> Facts:
            released = {
                name: statistic.release(gate, name, lengths[name]) for name, statistic in statistics.items()
            }
            estimated = self.estimate(released, public)
            sizes = public.arm_sizes if public.unit.treatment_public else (public.rows,)
            return Facts(
                estimate=float(estimated.effect),
                uncertainty=with_rare_events(estimated.uncertainty(), public.study.outcome_range, sizes),
                method=self.name,
                releases=tuple((name, DeclaredBound(float(bound))) for name, bound in bounds.items()),
                not_covered=self.not_covered(public, question.estimand),
                interval_target=self.interval_target,
                details={"rows": public.rows, **estimated.details, "mechanism": question.mechanism},
            )

        return Prepared(
            question=question,
            plan=plan,
            estimate=estimate,
            pages=("rows/statistic.proof.md",),
            proof=Proof.DECLARED,
            description={"written_by": described_method(self)},
        )


def described_method(method: AdaptiveMethod) -> dict[str, Any]:
    """Return what tells a method from others: its class and its settings."""
    return {"class": f"{type(method).__module__}:{type(method).__qualname__}", "settings": method.settings()}


def _kinds(statistics: Mapping[str, Statistic], mechanism: str) -> dict[str, Kind]:
    """Return how statistics that are not single numbers are planned.

    Gaussian noise follows the Euclidean length of a change, which is at most the sum of the absolute changes.
    """
    several = {name: statistic.kind for name, statistic in statistics.items() if statistic.norm != "absolute"}
    return dict.fromkeys(several, Kind.VECTOR) if mechanism == "gaussian" else several


def _check_shares(method: str, shares: Mapping[str, Any], statistics: Mapping[str, Statistic]) -> None:
    """Raise CV-P845 for parts of the budget that are not positive fractions of one, one for each statistic."""
    exact = all(isinstance(share, int | Fraction) and share > 0 for share in shares.values())
    if not statistics or shares.keys() != statistics.keys() or not exact or sum(shares.values()) != 1:
        raise refusal(
            "CV-P845", method=method, names=", ".join(statistics) or "no statistic", shares=dict(shares)
        )


def _plain(value: Any, name: str) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, tuple | list):
        return [_plain(item, name) for item in value]
    raise refusal("CV-P844", field=name, kind=type(value).__name__)


def supports(method: AdaptiveMethod, unit: Unit) -> bool:
    """Return whether a method has bounds for a level of protection."""
    return unit in tuple(map(Unit.parse, method.protects))


def check_own_method(method: AdaptiveMethod, taken: tuple[str, ...]) -> None:
    """Raise CV-P846 for a method without a name of its own, or without a level of protection."""
    name = getattr(method, "name", None)
    protects = getattr(method, "protects", None)
    named = isinstance(name, str) and 0 < len(name) <= LONGEST_NAME and name.isprintable()
    if not named or name in taken or not isinstance(protects, tuple) or not protects:
        raise refusal("CV-P846", method=type(method).__name__, name=name, protects=protects, taken=taken)
