"""What a planner assumes about people nobody has looked at yet.

People like those of a public sample: its covariates, drawn with replacement, with treatments and outcomes of models.

The sample is taken as public. Its rows are not repeated as they are: two that are alike in everything would make
outcomes look certain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import inf, isclose, log, pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, expit, ndtr, ndtri

from counterveil.data import Binary, Categories, Range, Study, Table, columns_as_written
from counterveil.data.outcomes import Before, earlier_name
from counterveil.numerics.arrays import Floats
from counterveil.privacy import Estimand
from counterveil.questions.plan.assumptions import MAX_CONFOUNDING, Assumptions, Summaries, out_of_range
from counterveil.report.text import percent
from counterveil.settings.methods import is_number, is_whole

# Without better knowledge the declared range is taken as six standard deviations wide.
_RANGE_IN_SDS = 6
# What is usual: covariates that go together a little, explain a part of the outcome, and move treatment where it was
# not randomised. Checked by `python -m experiments.plans`.
_CORRELATION, _EXPLAINED, _CONFOUNDING = 0.3, 0.2, 0.5
# Without better knowledge: how far a person's numbers go together, how many receive what they are assigned, and how
# many are lost from sight before the horizon.
_OUTCOME_CORRELATION, _COMPLIANCE_RATE, _CENSORING_RATE = 0.5, 0.7, 0.2
# What may be given for every outcome by its name.
_BY_OUTCOME = ("mean", "sd", "effect", "binary")
# What is assumed of outcomes and covariates; the rest is of further numbers of a person.
_OF_OUTCOMES = (*_BY_OUTCOME, "explained", "confounding", "share", "correlation", "covariates")
# Simulated people are held in memory; nobody waits for more draws than this.
FEWEST_ROWS, _MOST_ROWS, _MOST_DRAWS, SEEDS = 10, 10**8, 10**6, 2**62


@dataclass(frozen=True, slots=True)
class AssumedPeople:
    """What simulated data are made from; every number is an assumption or public, none is read off private rows.

    Attributes:
        mean: mean outcome of people who are not treated.
        sd: standard deviation of their outcomes; of no use where outcomes are binary.
        effect: what treatment adds to the mean outcome of everybody.
        explained: share of the variance of outcomes that follows the covariates (of their log-odds' where outcomes
            are binary).
        confounding: standard deviation of the log-odds of treatment due to the covariates.
        share: share of people who are treated; of several arms, of those in another arm than the reference.
        binary: whether outcomes are one end of their range or the other.
        correlation: of covariates that stand beside each other, falling with their distance; or a matrix.
        covariates: public summaries by name: mean and standard deviation of a number, shares of labels.
        sample: number of people in the public sample that stands in for all of these, 0 where there is none.
        censoring_rate: share of people who are lost from sight before the horizon; None where outcomes are no times.
        outcome_correlation: correlation, within an arm, of any two outcomes of a person, of an outcome with the same
            number before, or of a numerator with its denominator; at least `explained`, which all of them share.
            Where outcomes are binary it is that of the normal numbers behind them, and theirs is less. None where
            there is one number a person.
        others: mean, standard deviation, effect and whether they are binary, of outcomes beside the first.
        denominator: mean and standard deviation of denominators; None where outcomes are no ratios.
        compliance_rate: share of people who receive what they are assigned; None where all do.
        arms: number of arms.
    """

    mean: float
    sd: float
    effect: float
    explained: float
    confounding: float
    share: float
    binary: bool
    correlation: Any = 0.0
    covariates: dict[str, list[float]] = field(default_factory=dict)
    sample: int = 0
    censoring_rate: float | None = None
    outcome_correlation: float | None = None
    others: dict[str, dict[str, Any]] = field(default_factory=dict)
    denominator: list[float] | None = None
    compliance_rate: float | None = None
    arms: int = 2

    @classmethod
    def of(
        cls,
        study: Study,
        mean: float | None = None,
        sd: float | None = None,
        effect: float = 0.0,
        explained: float | None = None,
        confounding: float | None = None,
        share: float | None = None,
        binary: bool | None = None,
        correlation: float | Sequence[Sequence[float]] | None = None,
        covariates: Summaries | None = None,
    ) -> AssumedPeople:
        """Return the assumptions of a study, with what is left out taken from its declarations; raises CV-P700."""
        low, high = map(float, study.outcome_range)
        width = high - low
        arms = len(study.treatment_labels) if study.arms is not None else 2
        # Arms are of one size unless a share is declared.
        declared = 1 - 1 / arms if study.treated_share is None else float(study.treated_share)
        mean = (low + high) / 2 if mean is None else mean
        observed = bool(study.covariates) and not study.randomised
        usual = (_EXPLAINED if study.covariates else 0.0, _CONFOUNDING if observed else 0.0)
        found = cls(
            mean=between("mean", mean, low, high),
            sd=between("sd", width / _RANGE_IN_SDS if sd is None else sd, 0.0, width / 2, open_low=True),
            effect=between("effect", effect, low - mean, high - mean),
            explained=between("explained", usual[0] if explained is None else explained, 0.0, 1.0),
            confounding=between(
                "confounding", usual[1] if confounding is None else confounding, 0.0, MAX_CONFOUNDING
            ),
            share=between(
                "share", declared if share is None else share, 0.0, 1.0, open_low=True, open_high=True
            ),
            binary=_flag(binary, (low, high) == (0.0, 1.0)),
            correlation=_correlation(study, correlation),
            covariates=_summaries(study, {} if covariates is None else covariates),
            arms=arms,
        )
        if found.explained > 0 and not study.covariates:
            raise out_of_range("explained", "0 in a study without covariates", explained)
        if found.confounding > 0 and not observed:
            raise out_of_range("confounding", "0 in a trial, and where there are no covariates", confounding)
        return found

    def words(self) -> str:
        """Return the assumptions in one sentence."""
        if self.sample:
            return f"people like the {self.sample:,} of a public sample, with its outcomes and its imbalance"
        outcomes = "binary, mean" if self.binary else "mean"
        said_sd = "" if self.binary else f", standard deviation {self.sd:.4g}"
        if self.censoring_rate is not None:
            outcomes, said_sd = (
                "free of the event at the horizon",
                f", {percent(self.censoring_rate, '.3g')} lost before",
            )
        text = (
            f"outcomes without treatment {outcomes} {self.mean:.4g}{said_sd}; effect {self.effect:.4g} on everybody; "
            f"{percent(self.explained, '.3g')} of the outcome variance explained by covariates; "
            f"{self._shares()}"
        )
        text += f"; confounding {self.confounding:.3g}" if self.confounding else ""
        text += self._more()
        if not self.explained and not self.confounding:
            return text
        matrix = not isinstance(self.correlation, float)
        text += "; covariates correlated as given" if matrix else f"; correlation {self.correlation:.3g}"
        return text + (f"; public summaries of {len(self.covariates)} covariates" if self.covariates else "")

    def _shares(self) -> str:
        """Return how many people are in each arm."""
        if self.arms == 2:
            return f"{percent(self.share, '.3g')} treated"
        reference, each = 1 - self.share, self.share / (self.arms - 1)
        if isclose(reference, each):
            return f"{percent(each, '.3g')} in each of {self.arms} arms"
        others = f"each of the {self.arms - 1} other arms"
        return f"{percent(reference, '.3g')} in the reference arm and {percent(each, '.3g')} in {others}"

    def _more(self) -> str:
        """Return what is assumed of a person's further numbers."""
        found = "".join(
            f"; {name}: mean {one['mean']:.4g}, effect {one['effect']:.4g}"
            for name, one in self.others.items()
        )
        if self.denominator is not None:
            found += "; denominators of mean {:.4g} and standard deviation {:.4g}".format(*self.denominator)
        if self.outcome_correlation is not None:
            found += f"; a person's numbers correlated by {self.outcome_correlation:.3g}"
        if self.compliance_rate is not None:
            found += f"; {percent(self.compliance_rate, '.3g')} comply"
        return found


def assumed_of(
    study: Study,
    given: Assumptions,
    received: str | None = None,
) -> AssumedPeople:
    """Return the assumptions of a study whose people have further numbers; raises CV-P700.

    Of several outcomes, `given` may hold numbers by outcome; those of the first are the study's own.
    """
    names = (study.outcome,) if study.several is None else study.several.names
    assumed = {name: getattr(given, name) for name in _OF_OUTCOMES}
    first, *others = ({name: _of(assumed, name, outcome, names) for name in assumed} for outcome in names)
    found = AssumedPeople.of(study, **first)
    more: dict[str, Any] = {}
    if study.several is not None:
        ranges = dict(study.several.ranges)
        for name, own in zip(names[1:], others, strict=True):
            one = AssumedPeople.of(
                study._changed(several=None, outcome=name, outcome_range=ranges[name]), **own
            )
            more[name] = {field: getattr(one, field) for field in _BY_OUTCOME}
    several = study.several is not None or study.denominator is not None
    return replace(
        found,
        others=more,
        outcome_correlation=_share(
            "outcome_correlation",
            given.outcome_correlation,
            _OUTCOME_CORRELATION,
            several,
            "a study of several outcomes or with a denominator",
        ),
        denominator=_denominator(study, given.denominator),
        compliance_rate=_share(
            "compliance_rate",
            given.compliance_rate,
            _COMPLIANCE_RATE,
            received is not None,
            "question='compliance'",
        ),
    )


def _of(given: Mapping[str, Any], name: str, outcome: str, names: tuple[str, ...]) -> Any:
    """Return what is given for one outcome: its own number, or one that holds for all of them."""
    value = given[name]
    if name not in _BY_OUTCOME or not isinstance(value, Mapping):
        return value
    wrong = [key for key in value if key not in names]
    if wrong:
        raise out_of_range(name, f"numbers of {', '.join(map(repr, names))}", wrong[0])
    return value.get(outcome, 0.0 if name == "effect" else None)


def _share(name: str, given: float | None, usual: float, meant: bool, where: str) -> float | None:
    """Return a share that is of use, None where it is none; raises CV-P700."""
    if not meant:
        if given is not None:
            raise out_of_range(name, f"none but with {where}", given)
        return None
    return between(name, usual if given is None else given, 0.0, 1.0)


def _denominator(study: Study, given: Any) -> list[float] | None:
    """Return mean and standard deviation of denominators, None where there are none; raises CV-P700."""
    if study.denominator is None:
        if given is not None:
            raise out_of_range("denominator", "none, unless the study declares a denominator", given)
        return None
    low, high = map(float, study.denominator.range)
    numbers = [(low + high) / 2, (high - low) / _RANGE_IN_SDS] if given is None else given
    if (
        not isinstance(numbers, list | tuple)
        or len(numbers) != 2
        or not is_number(numbers[0], low, high)
        or not is_number(numbers[1], 0, (high - low) / 2)
    ):
        raise out_of_range("denominator", f"(mean, standard deviation) inside [{low:g}, {high:g}]", given)
    return [float(number) for number in numbers]


def censoring_rate(study: Study, given: float | None) -> float | None:
    """Return the share of people who are lost from sight, None for outcomes that are no times; raises CV-P700."""
    if study.event is None:
        if given is not None:
            raise out_of_range("censoring_rate", "none but with question='survival'", given)
        return None
    return _CENSORING_RATE if given is None else float(given)


def _flag(given: object, usual: bool) -> bool:
    if given is None or isinstance(given, bool):
        return usual if given is None else given
    raise out_of_range("binary", "True, False or None", given)


def _correlation(study: Study, given: object) -> Any:
    """Return a number, or a matrix as lists, or raise CV-P700."""
    size = len(study.covariates)
    if given is None:
        return _CORRELATION if size > 1 else 0.0
    if is_number(given, -0.99, 0.99):
        return float(given)  # type: ignore[arg-type]
    expected = f"a number from -0.99 to 0.99, or {size} by {size} correlations in the order of the covariates"
    try:
        found: Floats = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise out_of_range("correlation", expected, given) from None
    right = found.shape == (size, size) and bool(np.all(np.isfinite(found)))
    if not right or not np.allclose(found, found.T, atol=1e-6) or np.abs(found).max(initial=0.0) > 1 + 1e-9:
        raise out_of_range("correlation", expected, "other numbers")
    return found.tolist()


def _summaries(study: Study, given: Summaries) -> dict[str, list[float]]:
    """Return mean and standard deviation of numbers and shares of labels, or raise CV-P700."""
    found = {}
    if not isinstance(given, Mapping):
        raise out_of_range("covariates", "public summaries by name", given)
    for name, summary in given.items():
        domain = study.covariates.get(name)
        if domain is None:
            raise out_of_range("covariates", f"summaries of {', '.join(map(repr, study.covariates))}", name)
        if isinstance(domain, Range):
            low, high = domain.floats()
            wanted = f"{name!r}: (mean, standard deviation) inside [{low:g}, {high:g}]"
            numbers = list(summary) if isinstance(summary, Sequence) and not isinstance(summary, str) else []
            if (
                len(numbers) != 2
                or not is_number(numbers[0], low, high)
                or not is_number(numbers[1], 0, high - low)
            ):
                raise out_of_range("covariates", wanted, summary)
        else:
            labels = domain.labels
            wanted = f"{name!r}: a share for each of {', '.join(map(repr, labels))}, 1 together"
            if not isinstance(summary, Mapping) or set(summary) != set(labels):
                raise out_of_range("covariates", wanted, summary)
            numbers = [summary[label] for label in labels]
            if not all(is_number(one, 0, 1) for one in numbers) or abs(sum(numbers) - 1) > 0.01:
                raise out_of_range("covariates", wanted, summary)
        found[name] = [float(number) for number in numbers]
    return found


def between(
    name: str, value: Any, low: float, high: float, open_low: bool = False, open_high: bool = False
) -> float:
    """Return a number inside its range, or raise CV-P700."""
    wanted = f"a number {'above' if open_low else 'from'} {low:.6g} {'and below' if open_high else 'to'} {high:.6g}"
    if not is_number(value, low, high) or (open_low and value == low) or (open_high and value == high):
        raise out_of_range(name, wanted, value)
    return float(value)


def check_numbers(rows: Sequence[object], draws: object, seed: object, wanted: object) -> None:
    """Raise CV-P700 for numbers of people, studies and seeds that there cannot be."""
    if not rows:
        raise out_of_range("rows", "at least one number of people", rows)
    for size in rows:
        _check_whole("rows", size, FEWEST_ROWS, _MOST_ROWS)
    _check_whole("draws", draws, 1, _MOST_DRAWS)
    _check_whole("seed", seed, 0, SEEDS)
    if wanted is not None and not (isinstance(wanted, int | float) and 0 < wanted < inf):
        raise out_of_range("half_width", "a number above 0", wanted)


def _check_whole(name: str, value: object, least: int, most: int) -> None:
    if not is_whole(value, least, most):
        raise out_of_range(name, f"a whole number from {least} to {most}", value)


# A range is filled by a bell of this many standard deviations, cut off at its ends.
_BELL = 6
# Variance of the logistic law, which is the part of log-odds that covariates do not explain.
_LOGISTIC = pi**2 / 3
# No arm is left with fewer people.
_FEWEST = 2
# How far what moves treatment moves outcomes as well, as a correlation of their slopes.
_ALIGNED = 0.5
# Points of a table of quantiles, and the standard deviation up to which rounding leaves a law in [0, 1] one value.
_QUANTILES, _ONE_VALUE = 512, 1e-7


@dataclass(frozen=True, slots=True)
class People:
    """A table of people who do not exist, and what treatment does to them."""

    frame: dict[str, NDArray[Any]]
    columns: Floats  # covariates, standardised, a column each
    treated: NDArray[np.bool_]
    outcome: Floats
    gain: Floats  # what treatment adds to each outcome, which stays inside its range
    chance: Floats  # of treatment
    others: Mapping[str, tuple[Floats, Floats]] = field(
        default_factory=dict
    )  # further outcomes and their gains

    def effect(self, estimand: Estimand, outcome: str | None = None) -> float:
        """Return the mean effect on everybody, on those treated or on those not, or the overlap-weighted one."""
        return self._mean(self.others.get(outcome or "", (self.outcome, self.gain))[1], estimand)

    def means(self, estimand: Estimand, outcome: str | None = None) -> tuple[float, float]:
        """Return mean outcomes with treatment and without, of the same people."""
        seen, gain = self.others.get(outcome or "", (self.outcome, self.gain))
        without = self._mean(seen - gain * self.treated, estimand)
        return without + self._mean(gain, estimand), without

    def _mean(self, values: Floats, estimand: Estimand) -> float:
        if estimand is Estimand.ATE:
            return float(values.mean())
        if estimand is Estimand.ATO:
            return float(np.average(values, weights=self.chance * (1 - self.chance)))
        return float(values[self.treated if estimand is Estimand.ATT else ~self.treated].mean())


def simulate(study: Study, rows: int, assumed: AssumedPeople, generator: np.random.Generator) -> People:
    """Return `rows` people.

    Covariates go together as assumed. What moves outcomes and what moves treatment are sums of all standardised
    covariates with slopes that are drawn anew every time, and that are alike by half.
    """
    return simulate_around(study, rows, assumed, generator)[0]


def simulate_around(
    study: Study, rows: int, assumed: AssumedPeople, generator: np.random.Generator
) -> tuple[People, Floats, Floats]:
    """Return people, what of their covariates moves outcomes (standardised), and the luck of their outcomes."""
    coded = _covariates(study, rows, assumed, generator)
    columns = np.column_stack([_standard(values) for values in coded.values()] or [np.empty((rows, 0))])
    slopes = generator.standard_normal((2, columns.shape[1]))
    index = _standard(columns @ slopes[0])
    lean = _standard(columns @ (_ALIGNED * slopes[0] + sqrt(1 - _ALIGNED**2) * slopes[1]))
    treated, chance = assigned(study, assumed.confounding * lean, assumed.share, generator, coded)
    luck = luck_of(assumed, rows, generator)
    outcomes = both_outcomes(study.outcome_bounds.floats(), index, assumed, luck)
    return people_of(study, coded, columns, treated, chance, outcomes, generator), index, luck


def people_of(
    study: Study,
    coded: dict[str, Floats],
    columns: Floats,
    treated: NDArray[np.bool_],
    chance: Floats,
    outcomes: tuple[Floats, Floats],
    generator: np.random.Generator,
) -> People:
    """Return people with their covariates as numbers and codes, and both outcomes of everybody."""
    without, with_treatment = outcomes
    outcome = np.where(treated, with_treatment, without)
    frame: dict[str, NDArray[Any]] = dict(columns_as_written(coded, study))
    frame[study.treatment] = _arms(study, treated, generator)
    frame[study.outcome] = outcome
    # One row a person: what several become is what a row stands for here.
    frame |= {} if study.person is None else dict.fromkeys(study.person.columns, np.arange(len(outcome)))
    if study.before is not None:
        frame |= _compared(study, study.before, outcome)
        frame = frame if study.before.time is None else _in_periods(study, study.before, frame)
    return People(frame, columns, treated, outcome, with_treatment - without, chance)


def _compared(study: Study, before: Before, change: Floats) -> dict[str, NDArray[Any]]:
    """Return measurements before and after that differ by everyone's change, near the middle of what was before."""
    (low, high), (least, most) = (tuple(map(float, ends)) for ends in (before.outcome_range, before.range))
    earlier = np.clip((least + most) / 2, np.maximum(least, low - change), np.minimum(most, high - change))
    names = before.columns or (earlier_name(study.outcome),)
    return {study.outcome: earlier + change} | dict.fromkeys(names, earlier)


def _in_periods(study: Study, before: Before, frame: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return one row for every person and period, with everyone's measurement before or after in it."""
    assert before.time is not None
    earlier, labels = frame.pop(earlier_name(study.outcome)), before.labels(study.outcome)
    outcomes = [earlier] * before.earlier + [frame[study.outcome]] * len(before.after)
    found = {name: np.tile(values, len(labels)) for name, values in frame.items()}
    times = np.empty(len(labels), dtype=object)
    times[:] = labels
    if study.person is not None and study.person.rules[study.treatment] == "ever":
        # Nobody is treated before treatment starts.
        found[study.treatment][: before.earlier * len(earlier)] = (
            0 if study.control is None else study.control
        )
    return found | {study.outcome: np.concatenate(outcomes), before.time: np.repeat(times, len(earlier))}


def _arms(study: Study, treated: NDArray[np.bool_], generator: np.random.Generator) -> NDArray[Any]:
    """Return everybody's arm; those treated are in one of the arms beside the reference, equally often."""
    if study.arms is None:
        control = 0 if study.control is None else study.control
        return np.array([control, study.treated], dtype=object)[treated.astype(np.intp)]
    labels = np.empty(len(study.treatment_labels), dtype=object)
    labels[:] = study.treatment_labels
    codes = np.where(treated, generator.integers(1, len(labels), len(treated)), 0)
    # Whoever is needed for two people in each arm.
    codes[: _FEWEST * len(labels)] = np.repeat(np.arange(len(labels)), _FEWEST)[: len(codes)]
    return np.asarray(labels[codes])


# Covariates that go together: a normal for each, whose ranks become the values that were declared.


def _covariates(
    study: Study, rows: int, assumed: AssumedPeople, generator: np.random.Generator
) -> dict[str, Floats]:
    normals = generator.standard_normal((rows, len(study.covariates))) @ _root(study, assumed).T
    return {
        name: _covariate(domain, normals[:, place], assumed.covariates.get(name))
        for place, (name, domain) in enumerate(study.covariates.items())
    }


def _root(study: Study, assumed: AssumedPeople) -> Floats:
    """Return a root of the matrix of correlations."""
    size = len(study.covariates)
    if isinstance(assumed.correlation, int | float):
        apart = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
        matrix = np.power(float(assumed.correlation), apart) if assumed.correlation else np.eye(size)
    else:
        matrix = np.array(assumed.correlation, dtype=np.float64)
    values, vectors = np.linalg.eigh(matrix)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(root / np.maximum(np.sqrt((root**2).sum(axis=1, keepdims=True)), 1e-12))


def _covariate(domain: Range | Binary | Categories, normal: Floats, known: list[float] | None) -> Floats:
    """Return values of a range, or codes of labels, by the ranks of a normal number."""
    if isinstance(domain, Range):
        low, high = domain.floats()
        if known is None:
            return np.clip((low + high) / 2 + (high - low) / _BELL * normal, low, high)
        width = high - low
        return np.asarray(low + width * _in_range(normal, (known[0] - low) / width, known[1] / width))
    shares = np.full(len(domain.labels), 1 / len(domain.labels)) if known is None else np.array(known)
    cuts = ndtri(np.clip(np.cumsum(shares)[:-1], 0.0, 1.0))
    return np.searchsorted(cuts, normal).astype(np.float64)


def _in_range(normal: Floats, mean: float, sd: float) -> Floats:
    """Return numbers in [0, 1] of this mean and standard deviation: a beta law, or its ends where it is wider."""
    most = mean * (1 - mean)
    if sd <= _ONE_VALUE or most <= 0:
        return np.full(len(normal), mean)
    if sd**2 >= 0.98 * most:
        return np.asarray(normal > ndtri(1 - mean), dtype=np.float64)
    size = most / sd**2 - 1
    levels = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    table = betaincinv(mean * size, (1 - mean) * size, levels)
    return np.asarray(np.interp(ndtr(normal), levels, table))


def _standard(values: Floats) -> Floats:
    sd = float(values.std())
    return np.zeros(len(values)) if sd == 0 else (values - values.mean()) / sd


def assigned(
    study: Study, lean: Floats, share: float, generator: np.random.Generator, coded: Mapping[str, Floats]
) -> tuple[NDArray[np.bool_], Floats]:
    """Return who is treated and everybody's chance of it: what is declared, or as far as their log-odds differ."""
    rows = len(lean)
    if study.randomised:
        count = min(max(round(rows * share), _FEWEST), rows - _FEWEST)
        return generator.permutation(rows) < count, np.full(rows, count / rows)
    base = _level(lambda at: float(expit(at + lean).mean()), share)
    chance = np.asarray(expit(base + lean)) if study.score is None else coded[study.score]
    found: NDArray[np.bool_] = generator.random(rows) < chance
    # Whoever is needed for two people in each arm: covariates play no part in so few.
    found[:_FEWEST], found[_FEWEST : 2 * _FEWEST] = True, False
    return found, chance


def luck_of(assumed: AssumedPeople, rows: int, generator: np.random.Generator) -> Floats:
    """Return the part of outcomes that covariates do not explain: normal, or even in [0, 1] for binary ones."""
    return generator.random(rows) if assumed.binary else generator.standard_normal(rows)


def both_outcomes(
    ends: tuple[float, float], index: Floats, assumed: AssumedPeople, luck: Floats
) -> tuple[Floats, Floats]:
    """Return everybody's outcome without and with treatment, inside the declared range."""
    low, high = ends
    if not assumed.binary:
        own = sqrt(assumed.explained) * index + sqrt(1 - assumed.explained) * luck
        # Near an end of their range outcomes are skewed.
        means = ((mean - low) / (high - low) for mean in (assumed.mean, assumed.mean + assumed.effect))
        one, other = (low + (high - low) * _in_range(own, mean, assumed.sd / (high - low)) for mean in means)
        return one, other
    # Where covariates explain all, one tenth of a percent is left to chance so that log-odds stay finite.
    share = min(assumed.explained, 0.999)
    lean = sqrt(_LOGISTIC * share / (1 - share)) * index
    answers = []
    for mean in (assumed.mean, assumed.mean + assumed.effect):
        part = (mean - low) / (high - low)
        base = _level(lambda at: float(expit(at + lean).mean()), part)
        answers.append(np.where(luck < expit(base + lean), high, low))
    return answers[0], answers[1]


def _level(mean_at: Callable[[float], float], share: float) -> float:
    """Return where a rising function of the log-odds reaches a share; the ends are far out."""
    from scipy.optimize import brentq  # loaded by those who need it: it takes a fifth of a second

    if share <= 0 or share >= 1:
        return -1e3 if share <= 0 else 1e3
    odds = log(share / (1 - share))
    return float(brentq(lambda at: mean_at(at) - share, odds - 60, odds + 60))


def plain_half_width(study: Study, people: People, level: float) -> float:
    """Return half the length of the least-squares interval of the effect, adjusted for all covariates.

    Standard errors are robust to heteroskedasticity. Of several arms, the mean over their effects against the
    reference, as the half-width of the private answer is.
    """
    rows = len(people.outcome)
    if study.arms is None:
        arms = people.treated.astype(np.float64)[:, None]
    else:
        labels = people.frame[study.treatment]
        arms = np.column_stack([(labels == label).astype(np.float64) for label in study.treatment_labels[1:]])
    design = np.column_stack([np.ones(rows), arms, people.columns])
    inverse = np.linalg.pinv(design.T @ design)
    residual = people.outcome - design @ (inverse @ (design.T @ people.outcome))
    levers = design @ inverse[:, 1 : 1 + arms.shape[1]]
    loss = max(rows - design.shape[1], 1)
    variances = ((levers * residual[:, None]) ** 2).sum(axis=0) * rows / loss
    return float(ndtri((1 + level) / 2) * np.sqrt(variances).mean())


# How near to certain a chance is taken at most.
_UNCERTAIN = 1e-12


def people_of_question(
    study: Study,
    assumed: AssumedPeople,
    by_period: bool,
    received: str | None,
    rows: int,
    generator: np.random.Generator,
) -> People:
    """Return made-up people with all numbers that a question is about."""
    if received is not None:
        return _receiving(study, assumed, received, rows, generator)
    if study.several is not None:
        return _with_outcomes(study, assumed, rows, generator)
    if study.denominator is not None:
        return _with_denominators(study, assumed, rows, generator)
    if by_period and study.before is not None:
        return _by_period(study, study.before, assumed, rows, generator)
    return _with_times(study, assumed, rows, generator)


def _with_outcomes(study: Study, assumed: AssumedPeople, rows: int, generator: np.random.Generator) -> People:
    """Return people with all outcomes of a study, and what was measured of them before."""
    assert study.several is not None
    people, index, luck = simulate_around(study, rows, assumed, generator)
    ranges, earlier, left = dict(study.several.ranges), dict(study.several.baseline), _left(assumed)
    first = _normal(luck, assumed)
    # All outcomes lean on one number alike, so that any two of them go together as far.
    shared, frame = _like(first, sqrt(left), generator), dict(people.frame)
    others: dict[str, tuple[Floats, Floats]] = {}
    for name in study.several.names:
        own, mine, ends = assumed, first, (float(ranges[name][0]), float(ranges[name][1]))
        if name in assumed.others:
            own, mine = replace(assumed, **assumed.others[name]), _like(shared, sqrt(left), generator)
            without, treated = both_outcomes(ends, index, own, _luck(own, mine))
            frame[name] = np.where(people.treated, treated, without)
            others[name] = frame[name], treated - without
        if name in earlier:
            before = _luck(own, _like(mine, left, generator))
            frame[earlier[name]] = both_outcomes(ends, index, own, before)[0]
    return replace(people, frame=frame, others=others)


def _left(assumed: AssumedPeople) -> float:
    """Return the correlation of what covariates do not explain: what they explain is in all numbers alike."""
    left = max((assumed.outcome_correlation or 0.0) - assumed.explained, 0.0) / max(
        1 - assumed.explained, _UNCERTAIN
    )
    return min(left, 1.0)


def _normal(luck: Floats, assumed: AssumedPeople) -> Floats:
    return np.asarray(ndtri(np.clip(luck, _UNCERTAIN, 1 - _UNCERTAIN))) if assumed.binary else luck


def _luck(assumed: AssumedPeople, normal: Floats) -> Floats:
    return np.asarray(ndtr(normal)) if assumed.binary else normal


def _like(normal: Floats, correlation: float, generator: np.random.Generator) -> Floats:
    """Return normal numbers of this correlation with others."""
    own = generator.standard_normal(len(normal))
    return np.asarray(correlation * normal + sqrt(1 - correlation**2) * own)


def _with_denominators(
    study: Study, assumed: AssumedPeople, rows: int, generator: np.random.Generator
) -> People:
    """Return people with numerators, as outcomes are, and denominators that go together with them."""
    assert study.denominator is not None
    assert assumed.denominator is not None
    people, index, luck = simulate_around(study, rows, assumed, generator)
    (mean, sd), ends = assumed.denominator, study.denominator.range
    along = _like(_normal(luck, assumed), _left(assumed), generator)
    # Covariates explain as much of them as of numerators, and treatment does not move them.
    alike = replace(assumed, mean=mean, sd=sd, effect=0.0, binary=False)
    below = both_outcomes((float(ends[0]), float(ends[1])), index, alike, along)[0]
    # An effect is one on sums over sums.
    return replace(
        people,
        frame=people.frame | {study.denominator.column: below},
        gain=people.gain / float(below.mean()),
        outcome=people.outcome / float(below.mean()),
    )


def _by_period(
    study: Study, before: Before, assumed: AssumedPeople, rows: int, generator: np.random.Generator
) -> People:
    """Return people with a measurement in each period, whose changes from any to any vary as assumed."""
    people, index, _ = simulate_around(study, rows, assumed, generator)
    half = replace(assumed, sd=assumed.sd / sqrt(2), explained=min(2 * assumed.explained, 0.99))
    low, high = map(float, before.levels)
    labels, measured = before.labels(study.outcome), []
    for place in range(len(labels)):
        if place < before.earlier:
            change = half.sd * generator.standard_normal(rows)
        else:
            ends = study.outcome_bounds.floats()
            none, treated = both_outcomes(ends, index, half, luck_of(half, rows, generator))
            change = np.where(people.treated, treated, none)
        middle = sum(map(float, before.range)) / 2
        measured.append(np.clip(middle + change, low, high))
    frame: dict[str, NDArray[Any]] = dict(people.frame)
    if before.time is None:
        frame |= dict(zip(before.columns, measured, strict=False)) | {study.outcome: measured[-1]}
    else:
        frame[study.outcome] = np.concatenate(measured)
    return replace(people, frame=frame)


def _receiving(
    study: Study, assumed: AssumedPeople, received: str, rows: int, generator: np.random.Generator
) -> People:
    """Return people of whom some receive what they are assigned, and the others alike in both arms.

    The effect is that of receiving, and compliers are those whom assignment moves.
    """
    domain = study.covariates.get(received)
    if not isinstance(domain, Binary):
        raise out_of_range("received", "a covariate declared with cv.Binary(...)", received)
    others = {name: kind for name, kind in study.covariates.items() if name != received}
    people, _, _ = simulate_around(study._changed(covariates=others), rows, assumed, generator)
    fate = generator.random(rows)
    share = assumed.compliance_rate or 0.0
    complies, always = fate < share, fate > (1 + share) / 2
    takes = np.where(complies, people.treated, always)
    without = people.outcome - people.gain * people.treated
    outcome = without + people.gain * takes
    labels = np.empty(2, dtype=object)
    labels[:] = domain.labels
    frame = people.frame | {study.outcome: outcome, received: labels[takes.astype(np.intp)]}
    # What is estimated is the effect on compliers.
    gain = np.full(rows, float(people.gain[complies].mean()) if complies.any() else 0.0)
    return replace(people, frame=frame, outcome=outcome, gain=gain)


def at_the_horizon(study: Study) -> Study:
    """Return the study whose outcome is being free of the event at the horizon; one without times as it is."""
    if study.event is None:
        return study
    return study._changed(event=None, outcome_range=(Fraction(0), Fraction(1)))


def _with_times(study: Study, assumed: AssumedPeople, rows: int, generator: np.random.Generator) -> People:
    """Return people with times to an event where a study declares them.

    Events lie evenly between 0 and the horizon. Those who are lost from sight are so at an even time as well.
    """
    people = simulate(at_the_horizon(study), rows, assumed, generator)
    event = study.event
    if event is None:
        return people
    horizon = float(event.horizon)
    happens = np.where(people.outcome > 0, np.inf, horizon * generator.random(rows))
    leaves = np.where(
        generator.random(rows) < (assumed.censoring_rate or 0.0), horizon * generator.random(rows), np.inf
    )
    # Beyond the horizon nobody is looked at.
    time = np.minimum(np.minimum(happens, leaves), 2 * horizon)
    columns = {study.outcome: time, event.column: (happens <= np.minimum(leaves, horizon)).astype(np.int64)}
    return replace(people, frame=people.frame | columns)


# The prior standard deviation of a slope of the log-odds of treatment, so that few people are not fitted too closely.
_SLOPE = 0.5
_STEPS = 30


@dataclass(frozen=True, slots=True)
class PublicSample:
    """A sample with what was fitted to it: covariates (n, d) as features, slopes of treatment and of outcomes."""

    study: Study
    coded: dict[str, Floats]
    features: Floats
    lean: Floats
    base: Floats  # mean outcome of everybody without treatment
    effect: float
    residuals: tuple[Floats, Floats]  # of those not treated and of those treated
    share: float
    binary: bool

    @classmethod
    def of(cls, source: object, study: Study) -> PublicSample:
        """Return the sample, attached as the data of a study are, with its models fitted."""
        table = source if isinstance(source, Table) else Table.attach(source, study)
        low = float(study.outcome_range[0])
        y = low + float(table.outcome_unit) * table.outcome.astype(np.float64)
        features, treated = _features(table), table.treated.astype(np.float64)
        share = float(treated.mean())
        design = np.column_stack([np.ones(table.rows), treated, features])
        effect = float(np.linalg.lstsq(design, y, rcond=None)[0][1])
        base, lost = _ridge(np.column_stack([features, features**2]), y - effect * treated)
        # A fit leaves too little: degrees of freedom are lost.
        left = (y - base - effect * treated) * np.sqrt(table.rows / max(table.rows - lost - 1, 1.0))
        ends = (low, float(study.outcome_range[1]))
        return cls(
            study=study,
            coded=dict(table.covariates),
            features=features,
            lean=_lean(features, treated),
            base=base,
            effect=effect,
            residuals=(left[~table.treated], left[table.treated]),
            share=share,
            binary=bool(np.isin(np.round(y, 6), np.round(ends, 6)).all()),
        )

    @property
    def rows(self) -> int:
        """Number of people in the sample."""
        return len(self.features)

    def people(self, rows: int, generator: np.random.Generator) -> People:
        """Return `rows` people like those of the sample."""
        chosen = generator.integers(0, self.rows, rows)
        coded = {name: values[chosen] for name, values in self.coded.items()}
        treated, chance = assigned(self.study, self.lean[chosen], self.share, generator, coded)
        features = self.features[chosen]
        outcomes = self._outcomes(self.base[chosen], generator)
        return people_of(self.study, coded, features, treated, chance, outcomes, generator)

    def _outcomes(self, base: Floats, generator: np.random.Generator) -> tuple[Floats, Floats]:
        low, high = self.study.outcome_bounds.floats()
        if self.binary:
            luck = generator.random(len(base))
            chances = [np.clip((mean - low) / (high - low), 0.0, 1.0) for mean in (base, base + self.effect)]
            none, with_treatment = (np.where(luck < chance, high, low) for chance in chances)
            return none, with_treatment
        ranks = generator.random(len(base))
        errors = [np.sort(pool)[(ranks * len(pool)).astype(np.intp)] for pool in self.residuals]
        return np.clip(base + errors[0], low, high), np.clip(base + self.effect + errors[1], low, high)


def _features(table: Table) -> Floats:
    """Return (n, d) standardised numbers, truth values and indicators of labels but the first."""
    columns = []
    for name, domain in table.study.covariates.items():
        values = table.covariates[name]
        codes = range(1, len(domain.labels)) if isinstance(domain, Categories) else (None,)
        columns += [values if code is None else (values == code) * 1.0 for code in codes]
    found = np.column_stack(columns) if columns else np.empty((table.rows, 0))
    sd = found.std(axis=0)
    return np.asarray((found - found.mean(axis=0)) / np.where(sd > 0, sd, 1.0))


def _ridge(features: Floats, y: Floats) -> tuple[Floats, float]:
    """Return fitted values and degrees of freedom; the penalty has the least generalised cross-validation error."""
    centred = features - features.mean(axis=0)
    u, size, _ = np.linalg.svd(centred, full_matrices=False)
    mean = float(y.mean())
    along, rows = u.T @ (y - mean), len(y)
    best = (np.inf, np.full(rows, mean), 1.0)
    for penalty in rows * np.geomspace(1e-4, 1e2, 25):
        kept = size**2 / (size**2 + penalty)
        fitted, lost = mean + u @ (kept * along), float(kept.sum()) + 1
        error = float(((y - fitted) ** 2).sum()) / (1 - lost / rows) ** 2 if lost < rows else np.inf
        if error < best[0]:
            best = (error, fitted, lost)
    return best[1], best[2]


def _without(fitted: Floats, noise: float) -> Floats:
    """Return fitted values drawn towards their mean, so that errors of the fit are no part of their variance."""
    spread = float(fitted.var())
    kept = max(spread - noise, 0.0) / spread if spread > 0 else 0.0
    return np.asarray(fitted.mean() + np.sqrt(kept) * (fitted - fitted.mean()))


def _lean(features: Floats, treated: NDArray[np.float64]) -> Floats:
    """Return the log-odds of treatment that follow the covariates, by a logistic regression with a prior."""
    design = np.column_stack([np.ones(len(treated)), features])
    held = np.full(design.shape[1], 1 / _SLOPE**2)
    held[0] = 1e-6
    weights, hessian = np.zeros(design.shape[1]), np.eye(design.shape[1])
    for _ in range(_STEPS):
        chance = expit(design @ weights)
        spread = np.maximum(chance * (1 - chance), 1e-6)
        slope = design.T @ (treated - chance) - held * weights
        hessian = (design * spread[:, None]).T @ design
        step = np.linalg.solve(hessian + np.diag(held), slope)
        weights += np.clip(step, -2.0, 2.0)
        if float(np.abs(step).max()) < 1e-8:
            break
    inverse = np.linalg.inv(hessian + np.diag(held))
    noise = (inverse @ hessian @ inverse)[1:, 1:]
    return _without(features @ weights[1:], float(np.einsum("ij,jk,ik->i", features, noise, features).mean()))
