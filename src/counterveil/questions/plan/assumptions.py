"""What a planner assumes about people nobody has looked at yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

import numpy as np

from counterveil.data import Range, Study
from counterveil.errors import CounterveilError, refusal
from counterveil.numerics.arrays import Floats
from counterveil.settings.ranges import is_number, is_whole

# Without better knowledge the declared range is taken as six standard deviations wide.
_RANGE_IN_SDS = 6
# Standard deviations of the log-odds of treatment: beyond this nearly everybody's arm is certain.
_STRONGEST = 5.0
# What is usual: covariates that go together a little, explain a part of the outcome, and move treatment where it was
# not randomised. Checked by `python -m experiments.plans`.
_CORRELATION, _EXPLAINED, _CONFOUNDING = 0.3, 0.2, 0.5
# Without better knowledge: how far a person's numbers go together, how many receive what they are assigned, and how
# many are lost from sight before the horizon.
_TOGETHER, _COMPLYING, _LOST = 0.5, 0.7, 0.2
# What may be given for every outcome by its name.
_BY_OUTCOME = ("mean", "sd", "effect", "binary")
Summaries = Mapping[str, Any]
# Simulated people are held in memory; nobody waits for more draws than this.
FEWEST_ROWS, _MOST_ROWS, _MOST_DRAWS, SEEDS = 10, 10**8, 10**6, 2**62


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What simulated data are made from; every number is an assumption or public, none is read off private rows.

    Attributes:
        mean: mean outcome of people who are not treated.
        sd: standard deviation of their outcomes; of no use where outcomes are binary.
        effect: what treatment adds to the mean outcome of everybody.
        explained: share of the variance of outcomes that follows the covariates (of their log-odds' where outcomes
            are binary).
        confounding: standard deviation of the log-odds of treatment due to the covariates.
        share: share of people who are treated.
        binary: whether outcomes are one end of their range or the other.
        correlation: of covariates that stand beside each other, falling with their distance; or a matrix.
        covariates: public summaries by name: mean and standard deviation of a number, shares of labels.
        sample: number of people in the public sample that stands in for all of these, 0 where there is none.
        lost: share of people who are lost from sight before the horizon; None where outcomes are no times.
        together: correlation, within an arm, of any two outcomes of a person, of an outcome with the same number
            before, or of a numerator with its denominator; at least `explained`, which all of them share. Where
            outcomes are binary it is that of the normal numbers behind them, and theirs is less. None where there is
            one number a person.
        others: mean, standard deviation, effect and whether they are binary, of outcomes beside the first.
        denominator: mean and standard deviation of denominators; None where outcomes are no ratios.
        complying: share of people who receive what they are assigned; None where all do.
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
    lost: float | None = None
    together: float | None = None
    others: dict[str, dict[str, Any]] = field(default_factory=dict)
    denominator: list[float] | None = None
    complying: float | None = None

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
    ) -> Assumptions:
        """Return the assumptions of a study, with what is left out taken from its declarations; raises CV-P700."""
        low, high = map(float, study.outcome_range)
        width = high - low
        declared = 0.5 if study.treated_share is None else float(study.treated_share)
        mean = (low + high) / 2 if mean is None else mean
        observed = bool(study.covariates) and not study.randomised
        usual = (_EXPLAINED if study.covariates else 0.0, _CONFOUNDING if observed else 0.0)
        found = cls(
            mean=between("mean", mean, low, high),
            sd=between("sd", width / _RANGE_IN_SDS if sd is None else sd, 0.0, width / 2, open_low=True),
            effect=between("effect", effect, low - mean, high - mean),
            explained=between("explained", usual[0] if explained is None else explained, 0.0, 1.0),
            confounding=between(
                "confounding", usual[1] if confounding is None else confounding, 0.0, _STRONGEST
            ),
            share=between(
                "share", declared if share is None else share, 0.0, 1.0, open_low=True, open_high=True
            ),
            binary=_flag(binary, (low, high) == (0.0, 1.0)),
            correlation=_correlation(study, correlation),
            covariates=_summaries(study, {} if covariates is None else covariates),
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
        if self.lost is not None:
            outcomes, said_sd = "free of the event at the horizon", f", {100 * self.lost:.3g} % lost before"
        text = (
            f"outcomes without treatment {outcomes} {self.mean:.4g}{said_sd}; effect {self.effect:.4g} on everybody; "
            f"{100 * self.explained:.3g} % of the outcome variance explained by covariates; "
            f"{100 * self.share:.3g} % treated"
        )
        text += f"; confounding {self.confounding:.3g}" if self.confounding else ""
        text += self._more()
        if not self.explained and not self.confounding:
            return text
        matrix = not isinstance(self.correlation, float)
        text += "; covariates correlated as given" if matrix else f"; correlation {self.correlation:.3g}"
        return text + (f"; public summaries of {len(self.covariates)} covariates" if self.covariates else "")

    def _more(self) -> str:
        """Return what is assumed of a person's further numbers."""
        found = "".join(
            f"; {name}: mean {one['mean']:.4g}, effect {one['effect']:.4g}"
            for name, one in self.others.items()
        )
        if self.denominator is not None:
            found += "; denominators of mean {:.4g} and standard deviation {:.4g}".format(*self.denominator)
        if self.together is not None:
            found += f"; a person's numbers correlated by {self.together:.3g}"
        return found + ("" if self.complying is None else f"; {100 * self.complying:.3g} % comply")


def assumed_of(
    study: Study,
    given: Mapping[str, Any],
    together: float | None,
    denominator: Any,
    complying: float | None,
    received: str | None,
) -> Assumptions:
    """Return the assumptions of a study whose people have further numbers; raises CV-P700.

    Of a study of several outcomes, `given` may hold numbers by outcome, and its own are those of the first.
    """
    names = (study.outcome,) if study.several is None else study.several.names
    first, *others = ({name: _of(given, name, one, names) for name in given} for one in names)
    found = Assumptions.of(study, **first)
    more: dict[str, Any] = {}
    if study.several is not None:
        ranges = dict(study.several.ranges)
        for name, own in zip(names[1:], others, strict=True):
            one = Assumptions.of(study.changed(several=None, outcome=name, outcome_range=ranges[name]), **own)
            more[name] = {field: getattr(one, field) for field in _BY_OUTCOME}
    several = study.several is not None or study.per is not None
    return replace(
        found,
        others=more,
        together=_share("together", together, _TOGETHER, several, "a study with outcomes= or per="),
        denominator=_denominator(study, denominator),
        complying=_share("complying", complying, _COMPLYING, received is not None, "question='compliance'"),
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
            raise out_of_range(name, f"{name}= with {where} alone", given)
        return None
    return between(name, usual if given is None else given, 0.0, 1.0)


def _denominator(study: Study, given: Any) -> list[float] | None:
    """Return mean and standard deviation of denominators, None where there are none; raises CV-P700."""
    if study.per is None:
        if given is not None:
            raise out_of_range("denominator", "denominator= in a study with per= alone", given)
        return None
    low, high = map(float, study.per.range)
    numbers = [(low + high) / 2, (high - low) / _RANGE_IN_SDS] if given is None else given
    if (
        not isinstance(numbers, list | tuple)
        or len(numbers) != 2
        or not is_number(numbers[0], low, high)
        or not is_number(numbers[1], 0, (high - low) / 2)
    ):
        raise out_of_range("denominator", f"(mean, standard deviation) inside [{low:g}, {high:g}]", given)
    return [float(number) for number in numbers]


def lost_share(study: Study, given: float | None) -> float | None:
    """Return the share of people who are lost from sight, None for outcomes that are no times; raises CV-P700."""
    if study.event is None:
        if given is not None:
            raise out_of_range("lost", "lost= with question='survival' alone", given)
        return None
    lost = _LOST if given is None else given
    if not is_number(lost, 0.0, 1.0):
        raise out_of_range("lost", "a number from 0 to 1", given)
    return float(lost)


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


def out_of_range(name: str, expected: str, got: object) -> CounterveilError:
    """Return CV-P700."""
    return refusal("CV-P700", name=name, expected=expected, got=got)


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
