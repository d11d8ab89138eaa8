"""Effects that differ between people: what is asked, answers at public queries, and a released function.

    effect(x) = w . phi(x),    interval: effect(x) -+ z sd(x),    sd(x)^2 = phi(x)' V phi(x),

with public basis functions phi of covariates x, released weights w and the covariance V of their error (sampling,
noise and shrinkage). In: released weights with their covariances, and public queries. Out: effects in units of the
outcome. Everything is made of released numbers, so that nothing more is spent. Where Wald's test does not tell the
function from one number, `auto` answers with the average in its place (`estimators/moments/learner_model.py`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import hypot, log, sqrt
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, chdtri, ndtri

from counterveil.accounting import Uses
from counterveil.data import Range, Study, public_points
from counterveil.data.domains import Fill, Label, clamp, domain_codes, gaps, numbers
from counterveil.data.sources import read
from counterveil.errors import CounterveilError, refusal
from counterveil.inference.noisy_ratio import NoisyRatio
from counterveil.inference.simultaneous import deviations, level_of_each, pointwise, simultaneous
from counterveil.numerics.bases import Basis, constant_basis
from counterveil.numerics.products import blocks, projected
from counterveil.privacy import exact
from counterveil.privacy.caveats import Caveat
from counterveil.privacy.provenance import FunctionAverage
from counterveil.report.answer_words import ONE_EFFECT, function_notes, function_sentence
from counterveil.report.caveats import first_words
from counterveil.results.answering import Facts
from counterveil.results.effect import Effect, check_level, load, no_effects, save
from counterveil.results.figures import Figures, error_facts, interval_facts
from counterveil.results.overlap import OverlapSummary
from counterveil.results.question import Question
from counterveil.results.released import ReleasedAnswer
from counterveil.results.result import Result
from counterveil.session import Kind, Plan, Request

Floats = NDArray[np.float64]
Query = dict[str, float | Label]

# Characters of one answer beside its query, at most, and those of all that one request may have.
ANSWER_LENGTH, LONGEST_ANSWERS = 100, 16 * 2**20


@dataclass(frozen=True, slots=True, eq=False)
class Queries:
    """Public points at which effects are asked for.

    `columns` maps every covariate to float64 numbers inside its bounds, or to the codes of its labels;
    `rows` are the same points as people write them.
    """

    columns: Mapping[str, Floats]
    rows: tuple[Query, ...]

    def __len__(self) -> int:
        return len(self.rows)


def refuse_long_answers(queries: Queries) -> None:
    """Raise CV-P643 where the answers would be longer than a ledger keeps; a released function keeps no queries."""
    length = len(json.dumps(queries.rows, default=str)) + ANSWER_LENGTH * len(queries.rows)
    if length > LONGEST_ANSWERS:
        raise refusal(
            "CV-P643",
            longest_answers=LONGEST_ANSWERS // 2**20,
            rows=len(queries.rows),
            length=length // 2**20,
        )


def read_queries(source: Any, study: Study) -> Queries:
    """Return the points of a table of covariates, clamped to the study's bounds."""
    columns = read_columns(source, study)
    shown = {name: _as_written(values, name, study) for name, values in columns.items()}
    rows = tuple(dict(zip(shown, row, strict=True)) for row in zip(*shown.values(), strict=True))
    return Queries(columns, rows)


def reference_queries(study: Study, limit: int | None = None) -> tuple[tuple[str, ...], Queries]:
    """Return named points: the middle of every range and the first of all labels, then each covariate moved alone."""
    middle: Query = {
        name: sum(domain.floats()) / 2 if isinstance(domain, Range) else domain.labels[0]
        for name, domain in study.covariates.items()
    }
    names, rows = ["centre"], [middle]
    for name, domain in study.covariates.items():
        for value in domain.floats() if isinstance(domain, Range) else domain.labels[1:]:
            names.append(f"{name} = {value:g}" if isinstance(value, float) else f"{name} = {value}")
            rows.append(middle | {name: value})
    return tuple(names[:limit]), read_queries(rows[:limit], study)


def read_columns(source: Any, study: Study) -> dict[str, Floats]:
    """Return the study's covariates from a frame, a mapping of columns, a list of rows or an (n, p) array.

    Numbers are clamped to their bounds, labels become codes. A matrix has the covariates in the study's order.
    """
    names = tuple(study.covariates)
    if isinstance(source, np.ndarray) and source.ndim == 2 and source.shape[1] == len(names):
        source = dict(zip(names, source.T, strict=True))
    elif isinstance(source, Sequence) and not isinstance(source, str):
        source = {name: [_cell(row, name) for row in source] for name in names}
    elif isinstance(source, Mapping):
        plain = _numbers_only(source, study)
        if plain is not None:
            return plain
        # One person may be written as a mapping of single values.
        source = {
            name: [value] if isinstance(value, str) or not hasattr(value, "__len__") else value
            for name, value in source.items()
        }
    numeric = frozenset(name for name, domain in study.covariates.items() if isinstance(domain, Range))
    columns = read(source, names, numeric)
    return {name: _column(columns[name], name, study) for name in names}


def _numbers_only(source: Mapping[Any, Any], study: Study) -> dict[str, Floats] | None:
    """Return the columns where all are plain arrays of finite numbers: the common case, and the fast one."""
    columns: dict[str, Floats] = {}
    rows = -1
    for name, domain in study.covariates.items():
        values = source.get(name)
        if not isinstance(domain, Range) or not isinstance(values, np.ndarray) or values.ndim != 1:
            return None
        if values.dtype.kind not in "fiu" or rows not in (-1, len(values)):
            return None
        doubles = values.astype(np.float64)
        if np.isnan(doubles).any():
            return None
        columns[name], rows = clamp(doubles, domain), len(values)
    return columns or None


def _cell(row: Any, name: str) -> Any:
    if isinstance(row, Mapping) and name in row:
        return row[name]
    raise refusal("CV-P522", name=name, kind=type(row).__name__)


def _column(column: Any, name: str, study: Study) -> Floats:
    domain, rule = study.covariates[name], study.missing.get(name)
    missing = gaps(column)
    if missing.any() and not isinstance(rule, Fill):
        raise _not_known(name, "a value in every row", "rows without one")
    if isinstance(domain, Range):
        fill = float(exact(rule.value, "Fill")) if isinstance(rule, Fill) else 0.0
        return clamp(numbers(column, missing, fill, name), domain)
    codes = domain_codes(column, missing, domain, rule)
    if (codes < 0).any():
        raise _not_known(name, f"one of {list(domain.labels)!r}", "another label")
    return codes.astype(np.float64)


def _not_known(name: str, expected: str, got: str) -> CounterveilError:
    return refusal("CV-P524", name=name, expected=expected, got=got)


def _as_written(values: Floats, name: str, study: Study) -> list[float | Label]:
    domain = study.covariates[name]
    if isinstance(domain, Range):
        return [float(value) for value in values]
    return [domain.labels[int(code)] for code in values]


# The delta that refusals name: a tenth of one over the number of rows, and never more than this.
_LARGEST_DELTA = Fraction(1, 10**6)


@dataclass(frozen=True, slots=True)
class CateQuestion(Question):
    """The public arguments of one request for effects; `queries` is None where a function is asked for."""

    queries: Queries | None = None

    def uses(self, study: Study, question: str = "cate") -> Uses:
        """Return what the ledger compares with the access policy; an average effect is asked for as `cate`, too."""
        return Question.uses(self, study, question)

    def request(self, plan: Plan, study: Study, *, question: str = "cate", **said: object) -> Request:
        """Return the request that the ledger sees: the plan and a public description."""
        asked = None if self.queries is None else _digest(self.queries)
        return Question.request(self, plan, study, question=question, queries=asked, **said)


def default_delta(rows: int) -> Fraction:
    """Return a delta far below one over the public number of rows."""
    return min(_LARGEST_DELTA, Fraction(1, 10 * rows))


def require_gaussian(question: Question, method: str, rows: int) -> None:
    """Raise CV-P521 where a method whose noise is Gaussian was asked for a pure guarantee."""
    if question.budget.pure:
        delta = f"{float(default_delta(rows)):.1g}"
        raise refusal("CV-P521", method=method, budget=question.budget, delta=delta)


def vector_plan(question: Question, shares: Mapping[str, Fraction]) -> Plan:
    """Return the plan whose releases are all vectors of known joint sensitivity."""
    return Plan.split(question.budget, shares, question.mechanism, dict.fromkeys(shares, Kind.VECTOR))


def _digest(queries: Queries) -> str:
    text = json.dumps(queries.rows, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


_NAME = 40  # letters of a query in a table


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CateAnswers(ReleasedAnswer):
    """Released effects at public queries: what `counterveil.cate` returns with ``queries=``.

    Nothing in it is private any more, and nothing that its methods do spends budget.

    Attributes
    ----------
    queries : tuple of dict
        Covariates of each query, by name.
    estimates : tuple of float
        Effect at each query, in units of the outcome, treated minus control.
    sampling : tuple of float
        Standard deviation of each answer's sampling error.
    noise : tuple of float
        Standard deviation of each answer's privacy noise.
    distinct : int
        Number of different answers: queries in one bin share one.
    rank : int
        Number of released numbers that the answers are made of.
    noise_tail : {"normal", "laplace"}
        Law of the noise.
    one_effect : bool
        Whether all answers are the average effect, which alone has an interval: rows and budget do not show
        that effects differ between people.
    shrunk : tuple of float
        By how much shrinkage moved each answer; intervals are longer by it at both ends. Empty for none.
    method : str
        Estimator that was used, in words.
    treatment, outcome : str
        Columns of the study.
    level : float
        Default confidence level of intervals, in (0, 1).
    guarantee : Guarantee
        What is protected, how strongly, and where that is proved.
    spent : Budget
        Exact epsilon and delta that this answer cost.
    releases : tuple of (str, str)
        Every number that noise was drawn for: its name, and its sensitivity or scale.
    not_covered : tuple of Caveat or Detail
        What intervals do not cover, the worst first. Compare values, never words:
        ``cv.results.Caveat.CONFOUNDING in result.not_covered``.
    details : dict of str to float or str
        Further public or released numbers, such as ``"rows"``.
    diagnostics : dict of str to list
        Tables such as ``"balance"`` and ``"overlap"`` where they are public; else empty.
    interval_target : Target, WeightedContrast, LearnersAnswer, AtSites or None
        What intervals are for where they are not for the effect; None where they are.
    condition : NotAdjusted, AtSites or None
        Declared bound on confounding under which an unadjusted interval covers.
    assumptions : FoldModels, LinearScores, LinearIn, KnownScore, AtSites or None
        Models that must be right for intervals to cover; None where they need none.
    population : KeptPeople, KeptByTrim, AtSites or None
        Whom ``trim`` kept; None for everyone.
    repeat : Repeat or None
        Study, call and command that ask the same again, for reports. Not stored.
    by_arm : dict or None
        Table 1 of public covariates by arm, for reports. Not stored.

    Examples
    --------
    >>> import counterveil as cv
    >>> data = cv.datasets.dataset_1(800)
    >>> ask = {"protects": "outcome", "epsilon": 20, "delta": 1e-6, "noise": cv.SeededNoise(1)}
    >>> people = {"x1": [0.1, 0.9], "x2": [0.5, 0.5]}
    >>> answers = cv.cate(data.frame, data.study, method="series", queries=people, **ask)
    >>> len(answers.effect()), answers.one_effect
    (2, False)
    >>> low, high = answers.interval()
    >>> bool((low < answers.effect()).all() and (answers.effect() < high).all())
    True
    """

    queries: tuple[Query, ...]
    estimates: tuple[float, ...]
    sampling: tuple[float, ...]
    noise: tuple[float, ...]
    distinct: int
    rank: int
    noise_tail: str = "normal"
    one_effect: bool = False
    shrunk: tuple[float, ...] = ()

    @property
    def warning(self) -> str | None:
        """First line of every rendering, in capitals; None where there is nothing to warn of.

        It says that the effect is one number, or that no interval is for the effect.
        """
        return said_first(self, self.one_effect)

    @property
    def _names(self) -> tuple[str, ...]:
        """The names of the effects that are shown: one for every query, or one for everybody."""
        return tuple(query_name(query) for query in self.queries) if not self.one_effect else ("everybody",)

    @property
    def table(self) -> tuple[Effect, ...]:
        """Effect at every query; for intervals that hold for all of them, `band` may be shorter."""
        heavy = self.noise_tail != "normal"
        # One effect for everybody is the first of equal answers.
        shrunk = self.shrunk or (0.0,) * len(self.estimates)
        columns = (self.estimates, self.sampling, self.noise, shrunk)
        known = zip(self._names, *columns, strict=not self.one_effect)
        return tuple(
            Effect(
                name,
                NoisyRatio(estimate, 1.0, sampling**2, noise, 0.0, bias=bias, heavy=heavy),
                self.level,
                self.distinct,
            )
            for name, estimate, sampling, noise, bias in known
        )

    def effect(self) -> Floats:
        """Return the answers, in the order of the queries.

        Returns
        -------
        ndarray of float, shape (n,)
            Effects in units of the outcome, treated minus control.
        """
        return np.array(self.estimates)

    predict = effect

    @property
    def std_error(self) -> Floats:
        """Standard errors of the answers in units of the outcome, privacy noise included."""
        return np.hypot(self.sampling, self.noise)

    def interval(self, level: float | None = None) -> tuple[Floats, Floats]:
        """Return the two ends of an interval for every answer; each holds by itself.

        Parameters
        ----------
        level : float, optional
            Confidence level, in (0, 1). Default: that of the result.

        Returns
        -------
        tuple of (ndarray, ndarray)
            Lower and upper ends, each of shape (n,), in units of the outcome.

        Raises
        ------
        CounterveilError
            One effect for all, which has no intervals for people: CV-P528. A level outside (0, 1): CV-P015.
        """
        if self.one_effect:
            raise refusal("CV-P528")
        return self._interval(self.level if level is None else check_level(level))

    def _interval(self, level: float) -> tuple[Floats, Floats]:
        return self._around(self._half(level))

    def effect_interval(self, alpha: float = 0.05) -> tuple[Floats, Floats]:
        """Return the two ends of an interval for every answer, by EconML's name.

        Parameters
        ----------
        alpha : float, default 0.05
            One minus the confidence level, in (0, 1).

        Returns
        -------
        tuple of (ndarray, ndarray)
            Lower and upper ends, each of shape (n,), in units of the outcome.

        Raises
        ------
        CounterveilError
            One effect for all, which has no intervals for people: CV-P528. A level outside (0, 1): CV-P015.
        """
        return self.interval(1 - alpha)

    def band(self, level: float | None = None) -> tuple[Floats, Floats]:
        """Return the two ends of intervals that hold for all answers together.

        Parameters
        ----------
        level : float, optional
            Confidence level, in (0, 1). Default: that of the result.

        Returns
        -------
        tuple of (ndarray, ndarray)
            Lower and upper ends, each of shape (n,), in units of the outcome.

        Raises
        ------
        CounterveilError
            One effect for all, which has no intervals for people: CV-P528. A level outside (0, 1): CV-P015.

        Notes
        -----
        By Šidák's inequality over the distinct answers or, where it is shorter, by Scheffé's over the
        released numbers that they are made of.
        """
        if self.one_effect:
            raise refusal("CV-P528")
        return self._band(self.level if level is None else check_level(level))

    def _band(self, chosen: float) -> tuple[Floats, Floats]:
        half = self._half(level_of_each(chosen, self.distinct))
        if self.noise_tail == "normal":
            half = np.minimum(half, sqrt(float(chdtri(self.rank, 1 - chosen))) * self.std_error)
        return self._around(half)

    def _half(self, level: float) -> Floats:
        # Exact for normal noise; for the sum of a normal and a Laplace mechanism it errs on the long side.
        normal = -float(ndtri((1 - level) / 2))
        noise_quantile = normal if self.noise_tail == "normal" else max(normal, -log(1 - level) / sqrt(2))
        return np.hypot(normal * np.array(self.sampling), noise_quantile * np.array(self.noise))

    def _around(self, half: Floats) -> tuple[Floats, Floats]:
        half_width = half + np.array(self.shrunk) if self.shrunk else half
        return self.effect() - half_width, self.effect() + half_width

    def _rows(self) -> list[dict[str, Any]]:
        """Return one dictionary a query, with the names that R's `broom` uses, dots replaced by underscores."""
        source = self._source()
        asked: tuple[Query, ...] = ({},) if self.one_effect else self.queries
        estimand = "ATE" if self.one_effect else "CATE"
        return [
            {"term": self.treatment, **query, "estimand": estimand} | figures.row() | source
            for query, figures in zip(asked, self._figures(), strict=not self.one_effect)
        ]

    def _figures(self) -> Iterator[Figures]:
        """Return every answer with its error and both its intervals; there are too many for p-values."""
        ends = (*self._interval(self.level), *self._band(self.level))
        columns = (np.array(self.estimates), self.std_error, self.sampling, self.noise, *ends)
        for number in zip(*(np.asarray(column).tolist() for column in columns), strict=True):
            estimate, total, sampling, noise, low, high, least, most = number
            # Queries in one bin share one answer: then there is nothing to hold together.
            together = (least, most) if self.distinct > 1 else (low, high)
            yield Figures(
                estimate=estimate,
                errors=(total, sampling, noise),
                level=self.level,
                ends=(low, high),
                together=together,
            )

    def effect_facts(self) -> list[dict[str, Any]]:
        """Return every answer with its error and both its intervals; there are too many for p-values.

        Returns
        -------
        list of dict
            ``name``, ``estimate``, ``std_error``, ``interval`` and, of several answers,
            ``simultaneous_interval``.
        """
        return [
            {
                "name": name,
                "estimate": figures.estimate,
                "std_error": error_facts(figures.errors),
                "interval": interval_facts(self.level, figures.ends),
            }
            | (
                {"simultaneous_interval": interval_facts(self.level, figures.together)}
                if self.distinct > 1 and figures.together is not None
                else {}
            )
            for name, figures in zip(self._names, self._figures(), strict=not self.one_effect)
        ]

    def _shown(self) -> dict[str, Any]:
        errors = {
            "std_error": {
                "total": self.std_error.tolist(),
                "sampling": list(self.sampling),
                "noise": list(self.noise),
            },
        }
        if self.one_effect:
            return errors
        (low, high), (least, most) = self.interval(), self.band()
        return errors | {
            "interval": {"level": self.level, "low": low.tolist(), "high": high.tolist()},
            "simultaneous_interval": {"level": self.level, "low": least.tolist(), "high": most.tolist()},
        }

    def report_facts(self) -> dict[str, Any]:
        """Return what reports and pictures show: the facts of `to_dict`, with a row for every query.

        Returns
        -------
        dict
            Facts by name; numbers may be infinite.
        """
        return self.to_dict() | {
            "sentence": f"effect at {len(self.queries)} quer{'y' if len(self.queries) == 1 else 'ies'}",
            "effects": self.effect_facts(),
        }

    def _check(self) -> None:
        ReleasedAnswer._check(self)
        parts = (self.queries, self.estimates, self.sampling, self.noise, self.shrunk or self.queries)
        if len({len(part) for part in parts}) > 1:
            raise ValueError("every query has one answer")

    def save(self, path: str | Path) -> Path:
        """Write the answers as JSON, without any data in it.

        Parameters
        ----------
        path : str or Path
            File to write.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        CounterveilError
            The file cannot be written: CV-P021.
        """
        return save(self.to_dict(), path)

    @classmethod
    def load(cls, path: str | Path) -> CateAnswers:
        """Return the answers that `save` wrote.

        Parameters
        ----------
        path : str or Path
            File to read.

        Returns
        -------
        CateAnswers
            Equal to those that were saved.

        Raises
        ------
        CounterveilError
            Another file: CV-P552.
        """
        return load(path, cls.from_dict, lambda got: no_effects(got, "CateAnswers.save"))


def said_first(effects: ReleasedAnswer, one_effect: bool) -> str | None:
    """Return what every rendering of effects says first, None where there is nothing to say."""
    graver = first_words(interval_target=effects.interval_target, condition=effects.condition)
    more = ONE_EFFECT if one_effect and effects.interval_target is None else None
    models = first_words(interval_target=None, assumptions=effects.assumptions) if graver is None else None
    return "; ".join(text for text in (graver, more, models) if text) or None


def query_name(query: Query) -> str:
    """Return the values of a query as they stand in a table, cut where covariates are many."""
    values = (f"{value:.4g}" if isinstance(value, float) else str(value) for value in query.values())
    text = ", ".join(f"{name} {value}" for name, value in zip(query, values, strict=True))
    return text if len(text) <= _NAME else f"{text[: _NAME - 1]}…"


# Curves of a page, and points of each.
_CURVES, _CURVE_POINTS = 4, 41


class Predictor:
    """Predicts effects, as scikit-learn's pipelines expect; it is fitted already.

    Parameters
    ----------
    model : CateModel
        The released function.

    Attributes
    ----------
    model : CateModel
        The released function.
    n_features_in_ : int
        Number of covariates.
    feature_names_in_ : ndarray of str
        Names of the covariates, in the order of the study.

    Examples
    --------
    >>> import counterveil as cv
    >>> data = cv.datasets.dataset_1(800)
    >>> ask = {"protects": "outcome", "epsilon": 20, "delta": 1e-6, "noise": cv.SeededNoise(1)}
    >>> predictor = cv.cate(data.frame, data.study, method="series", **ask).to_sklearn()
    >>> predictor.predict({"x1": [0.1, 0.9], "x2": [0.5, 0.5]}).shape
    (2,)
    """

    _estimator_type = "regressor"

    def __init__(self, model: CateModel) -> None:
        self.model = model
        self.n_features_in_ = len(model.study.covariates)
        self.feature_names_in_ = np.array(list(model.study.covariates), dtype=object)

    def fit(self, X: Any = None, y: Any = None) -> Predictor:  # noqa: ARG002 - nothing is left to fit
        """Return the same object: the function was released before, and rows are never read again.

        Parameters
        ----------
        X : Any, optional
            Not read.
        y : Any, optional
            Not read.

        Returns
        -------
        Predictor
            The same object.
        """
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the effect for every row.

        Parameters
        ----------
        X : data frame, mapping of columns, list of rows, or ndarray of shape (n, p)
            Covariates by name; a matrix has them in the order of the study. Numbers are clamped to their
            public bounds.

        Returns
        -------
        ndarray of float, shape (n,)
            Effects in units of the outcome, treated minus control.
        """
        return self.model.effect(X)

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 - the model has no parameters
        """Return what the object was made of.

        Parameters
        ----------
        deep : bool, default True
            Not used: a model has no parameters.

        Returns
        -------
        dict
            The model.
        """
        return {"model": self.model}

    def set_params(self, **parameters: Any) -> Predictor:
        """Return the same object with another model.

        Parameters
        ----------
        **parameters : Any
            ``model``, a `CateModel`.

        Returns
        -------
        Predictor
            The same object.
        """
        if "model" in parameters:
            self.__init__(parameters["model"])  # type: ignore[misc]
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class CateModel(ReleasedAnswer):
    """A released function of effects: what `counterveil.cate` returns.

    %FREE% It can be evaluated at any covariates, as often as wanted. `effects` and `table` are about
    reference points: all covariates at the middle of their range or their first label, then each moved by
    itself.

    Attributes
    ----------
    study : Study
        Study with the public ranges and labels of the covariates.
    basis : Basis
        Functions of the covariates that the effect is a sum of.
    weights : ndarray of float, shape (k,)
        Weights of these functions: effect(x) = basis(x) @ weights.
    covariance : ndarray of float, shape (k, k)
        Covariance of the weights around the best function of the basis: noise, sampling and shrinkage.
    noise_covariance : ndarray of float, shape (k, k)
        The part of it that is privacy noise.
    heterogeneous : bool
        False where rows and budget do not show that effects differ between people: then only the average
        effect, in `table`, has an interval.
    higher : tuple of (Basis, ndarray) or None
        Functions beyond the basis and their variances, for intervals and bands alone.
    shrinkage : ndarray of float, shape (k,), or None
        What was taken off the weights as measured; intervals are longer by its size at both ends.
    method : str
        Estimator that was used, in words.
    treatment, outcome : str
        Columns of the study.
    level : float
        Default confidence level of intervals, in (0, 1).
    guarantee : Guarantee
        What is protected, how strongly, and where that is proved.
    spent : Budget
        Exact epsilon and delta that this answer cost.
    releases : tuple of (str, str)
        Every number that noise was drawn for: its name, and its sensitivity or scale.
    not_covered : tuple of Caveat or Detail
        What intervals do not cover, the worst first. Compare values, never words:
        ``cv.results.Caveat.CONFOUNDING in result.not_covered``.
    details : dict of str to float or str
        Further public or released numbers, such as ``"rows"``.
    diagnostics : dict of str to list
        Tables such as ``"balance"`` and ``"overlap"`` where they are public; else empty.
    interval_target : Target, WeightedContrast, LearnersAnswer, AtSites or None
        What intervals are for where they are not for the effect; None where they are.
    condition : NotAdjusted, AtSites or None
        Declared bound on confounding under which an unadjusted interval covers.
    assumptions : FoldModels, LinearScores, LinearIn, KnownScore, AtSites or None
        Models that must be right for intervals to cover; None where they need none.
    population : KeptPeople, KeptByTrim, AtSites or None
        Whom ``trim`` kept; None for everyone.
    repeat : Repeat or None
        Study, call and command that ask the same again, for reports. Not stored.
    by_arm : dict or None
        Table 1 of public covariates by arm, for reports. Not stored.

    Notes
    -----
    The effect at x is the conditional average treatment effect E[Y(1) - Y(0) | X = x], approximated by
    functions of the basis. Intervals are basis(x) @ weights -+ z sd(x), with sd(x)^2 = basis(x) @ covariance
    @ basis(x), longer by the shrinkage; bands multiply sd(x) by the quantile of its largest error over the
    rows.

    Examples
    --------
    >>> import counterveil as cv
    >>> data = cv.datasets.dataset_1(800)
    >>> ask = {"protects": "outcome", "epsilon": 20, "delta": 1e-6, "noise": cv.SeededNoise(1)}
    >>> model = cv.cate(data.frame, data.study, method="series", **ask)
    >>> people = {"x1": [0.1, 0.9], "x2": [0.5, 0.5]}
    >>> model.effect(people).shape
    (2,)
    >>> low, high = model.band(people)
    >>> bool((low < high).all())
    True
    >>> [effect.name for effect in model.table]
    ['centre', 'x1 = 0', 'x1 = 1', 'x2 = 0', 'x2 = 1']
    """

    _PLOT: ClassVar[str] = "effect_curve"
    study: Study
    basis: Basis
    weights: Floats
    covariance: Floats
    noise_covariance: Floats
    treatment: str = field(init=False)
    outcome: str = field(init=False)
    heterogeneous: bool = True
    higher: tuple[Basis, Floats] | None = None
    shrinkage: Floats | None = None

    def __post_init__(self) -> None:
        for name in ("treatment", "outcome"):
            object.__setattr__(self, name, getattr(self.study, name))

    @classmethod
    def _made(cls, treatment: str = "", outcome: str = "", **fields: Any) -> CateModel:  # noqa: ARG003
        """Return a model of its fields; columns are those of its study."""
        return cls(**fields)

    @property
    def warning(self) -> str | None:
        """First line of every rendering, in capitals; None where there is nothing to warn of.

        It says that the effect is one number, or that no interval is for the effect.
        """
        return said_first(self, not self.heterogeneous)

    def effect(self, X: Any) -> Floats:
        """Return the effect for every row of a table of covariates.

        Parameters
        ----------
        X : data frame, mapping of columns, list of rows, or ndarray of shape (n, p)
            Covariates by name; a matrix has them in the order of the study. Numbers are clamped to their
            public bounds.

        Returns
        -------
        ndarray of float, shape (n,)
            Effects in units of the outcome, treated minus control.

        Raises
        ------
        CounterveilError
            Columns that are missing or hold other values: CV-P522, CV-P524.
        """
        columns = read_columns(X, self.study)
        rows = len(next(iter(columns.values())))
        effects = np.empty(rows)
        for block in blocks(rows):
            effects[block] = projected(self.basis.features(columns, block), self.weights)
        return effects

    def predict(self, X: Any) -> Floats:
        """Return the effect for every row, by scikit-learn's name.

        Parameters
        ----------
        X : data frame, mapping of columns, list of rows, or ndarray of shape (n, p)
            Covariates by name; a matrix has them in the order of the study. Numbers are clamped to their
            public bounds.

        Returns
        -------
        ndarray of float, shape (n,)
            Effects in units of the outcome, treated minus control.

        Raises
        ------
        CounterveilError
            Columns that are missing or hold other values: CV-P522, CV-P524.
        """
        return self.effect(X)

    def interval(self, X: Any, level: float | None = None) -> tuple[Floats, Floats]:
        """Return the two ends of an interval for every row; each holds by itself.

        Parameters
        ----------
        X : data frame, mapping of columns, list of rows, or ndarray of shape (n, p)
            Covariates by name; a matrix has them in the order of the study. Numbers are clamped to their
            public bounds.
        level : float, optional
            Confidence level, in (0, 1). Default: that of the result.

        Returns
        -------
        tuple of (ndarray, ndarray)
            Lower and upper ends, each of shape (n,), in units of the outcome.

        Raises
        ------
        CounterveilError
            One effect for all, which has no intervals for people: CV-P528. A level outside (0, 1): CV-P015.
            Columns that are missing or hold other values: CV-P522, CV-P524.
        """
        chosen = self._level_for_people(level)
        features, covariance = self._with_higher(X)
        return self._around(features, covariance, pointwise(chosen))

    def effect_interval(self, X: Any, alpha: float = 0.05) -> tuple[Floats, Floats]:
        """Return the two ends of an interval for every row, by EconML's name.

        Parameters
        ----------
        X : data frame, mapping of columns, list of rows, or ndarray of shape (n, p)
            Covariates by name; a matrix has them in the order of the study. Numbers are clamped to their
            public bounds.
        alpha : float, default 0.05
            One minus the confidence level, in (0, 1).

        Returns
        -------
        tuple of (ndarray, ndarray)
            Lower and upper ends, each of shape (n,), in units of the outcome.

        Raises
        ------
        CounterveilError
            One effect for all, which has no intervals for people: CV-P528. A level outside (0, 1): CV-P015.
            Columns that are missing or hold other values: CV-P522, CV-P524.
        """
        return self.interval(X, 1 - alpha)

    def band(self, X: Any, level: float | None = None) -> tuple[Floats, Floats]:
        """Return the two ends of intervals that hold for all rows together.

        Parameters
        ----------
        X : data frame, mapping of columns, list of rows, or ndarray of shape (n, p)
            Covariates by name; a matrix has them in the order of the study. Numbers are clamped to their
            public bounds.
        level : float, optional
            Confidence level, in (0, 1). Default: that of the result.

        Returns
        -------
        tuple of (ndarray, ndarray)
            Lower and upper ends, each of shape (n,), in units of the outcome.

        Raises
        ------
        CounterveilError
            One effect for all, which has no intervals for people: CV-P528. A level outside (0, 1): CV-P015.
            Columns that are missing or hold other values: CV-P522, CV-P524.
        """
        chosen = self._level_for_people(level)
        features, covariance = self._with_higher(X)
        return self._around(features, covariance, simultaneous(features, covariance, chosen))

    def average(self, X: Any, level: float | None = None) -> tuple[float, float, float]:
        """Return the mean effect over rows, which are taken as public, and the ends of its interval.

        Parameters
        ----------
        X : data frame, mapping of columns, list of rows, or ndarray of shape (n, p)
            Covariates by name; a matrix has them in the order of the study. Numbers are clamped to their
            public bounds.
        level : float, optional
            Confidence level, in (0, 1). Default: that of the result.

        Returns
        -------
        tuple of (float, float, float)
            Mean effect, lower and upper end, in units of the outcome.

        Raises
        ------
        CounterveilError
            One effect for all, which has no intervals for people: CV-P528. A level outside (0, 1): CV-P015.
            Columns that are missing or hold other values: CV-P522, CV-P524.
        """
        chosen = self._level_for_people(level)
        features, covariance = self._with_higher(X)
        mean = features.mean(axis=0, keepdims=True)
        low, high = self._around(mean, covariance, pointwise(chosen))
        return float(low[0] + high[0]) / 2, float(low[0]), float(high[0])

    def answers(self, queries: Queries) -> CateAnswers:
        """Return the effects at public queries, with an interval for each.

        Parameters
        ----------
        queries : Queries
            Public points, as `counterveil.results.functions.read_queries` returns them.

        Returns
        -------
        CateAnswers
            An answer for each query.
        """
        features = self.basis.features(queries.columns)
        total = deviations(*self._joined(features, queries.columns))
        noise = deviations(features, self.noise_covariance)
        return CateAnswers(
            queries=queries.rows,
            estimates=tuple((features @ self.weights).tolist()),
            sampling=tuple(np.sqrt(np.maximum(total**2 - noise**2, 0.0)).tolist()),
            noise=tuple(noise.tolist()),
            distinct=len({row.tobytes() for row in features}),
            rank=self.basis.size,
            **self.provenance() | {"outcome": self.study.outcome_name, "diagnostics": {}},
            one_effect=not self.heterogeneous,
            shrunk=tuple(np.abs(self._shrunk(features)).tolist()),
        )

    def to_sklearn(self) -> Predictor:
        """Return an object with `predict`, `fit` and `get_params`, as scikit-learn's pipelines expect.

        Returns
        -------
        Predictor
            A fitted regressor of the effect.
        """
        return Predictor(self)

    def at_reference(self) -> tuple[tuple[str, ...], CateAnswers]:
        """Return names of reference points and the effects there.

        Returns
        -------
        tuple of (tuple of str, CateAnswers)
            One point where there is one effect for all.
        """
        names, queries = reference_queries(self.study, None if self.heterogeneous else 1)
        return names if self.heterogeneous else ("everybody",), self.answers(queries)

    @property
    def table(self) -> tuple[Effect, ...]:
        """Effects at reference points, named by the covariate that is moved."""
        names, answers = self.at_reference()
        return tuple(replace(effect, name=name) for name, effect in zip(names, answers.table, strict=True))

    def _rows(self) -> list[dict[str, Any]]:
        """Return one dictionary a reference point, with the names that R's `broom` uses, and underscores."""
        names, answers = self.at_reference()
        return [{"point": name} | row for name, row in zip(names, answers._rows(), strict=True)]

    def report_facts(self) -> dict[str, Any]:
        """Return what reports show: the facts of `to_dict`, with a row for every reference point.

        Returns
        -------
        dict
            Facts by name; numbers may be infinite.
        """
        names, answers = self.at_reference()
        rows = zip(names, answers.effect_facts(), strict=True)
        return self.to_dict() | {
            "sentence": function_sentence(self.basis.size if self.heterogeneous else None),
            "effects": [facts | {"name": name} for name, facts in rows],
            "notes": function_notes(heterogeneous=self.heterogeneous),
        }

    def page_facts(self, overlap: OverlapSummary | None = None) -> dict[str, Any]:
        """Return what a page shows: the facts of `report_facts`, and curves along numeric covariates.

        Parameters
        ----------
        overlap : OverlapSummary, optional
            What `counterveil.overlap` released of private records.

        Returns
        -------
        dict
            Facts by name; numbers may be infinite.
        """
        # Named in full: with slots, the class in `super()` is not the one that is left.
        facts = ReleasedAnswer.page_facts(self, overlap)
        if not self.heterogeneous or self.interval_target is not None:
            return facts
        numeric = [name for name, domain in self.study.covariates.items() if isinstance(domain, Range)]
        curves = [self._curve(name) for name in numeric[:_CURVES]]
        return facts | {"effect_curves": curves, "curves_left": len(numeric) - len(curves)}

    def _curve(self, feature: str) -> dict[str, Any]:
        """Return the effect along one covariate, with intervals and band, the others as at the reference point."""
        ranges = {name: domain for name, domain in self.study.covariates.items() if isinstance(domain, Range)}
        x = np.linspace(*ranges[feature].floats(), _CURVE_POINTS)
        columns = {
            name: np.full(len(x), sum(domain.floats()) / 2 if isinstance(domain, Range) else 0.0)
            for name, domain in self.study.covariates.items()
        } | {feature: x}
        features, covariance = self._joined(self.basis.features(columns), columns)
        inner = self._around(features, covariance, pointwise(self.level))
        outer = self._around(features, covariance, simultaneous(features, covariance, self.level))
        return {
            "feature": feature,
            "x": x.tolist(),
            "effect": (features[:, : len(self.weights)] @ self.weights).tolist(),
            "interval": [end.tolist() for end in inner],
            "band": [end.tolist() for end in outer],
        }

    def _shown(self) -> dict[str, Any]:
        # A model holds no interval: what is written is what was released.
        return {}

    def _check(self) -> None:
        # Evaluated once: weights and functions that do not belong together are refused here, not when it is used.
        ReleasedAnswer._check(self)
        if not np.isfinite(self.weights).all():
            raise ValueError("weights are finite")
        one = public_points(self.study, 1)
        features, covariance = self._joined(self.basis.features(one), one)
        self._around(features, covariance, 1.0)
        deviations(features[:, : len(self.weights)], self.noise_covariance)

    def save(self, path: str | Path) -> Path:
        """Write the model as JSON, with no data in it.

        Parameters
        ----------
        path : str or Path
            File to write.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        CounterveilError
            The file cannot be written: CV-P021.
        """
        return save(self.to_dict(), path)

    @classmethod
    def load(cls, path: str | Path) -> CateModel:
        """Return the model that `save` wrote.

        Parameters
        ----------
        path : str or Path
            File to read.

        Returns
        -------
        CateModel
            Evaluates to the same effects as the one that was saved.

        Raises
        ------
        CounterveilError
            Another file: CV-P552.

        Examples
        --------
        >>> import counterveil as cv
        >>> data = cv.datasets.dataset_1(800)
        >>> ask = {"protects": "outcome", "epsilon": 20, "delta": 1e-6, "noise": cv.SeededNoise(1)}
        >>> import tempfile
        >>> model = cv.cate(data.frame, data.study, method="series", **ask)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = model.save(f"{folder}/effects.json")
        ...     again = cv.results.CateModel.load(path)
        >>> bool((again.effect({"x1": [0.5], "x2": [0.5]}) == model.effect({"x1": [0.5], "x2": [0.5]})).all())
        True
        """
        writer = "CateModel.save or `counterveil cate --out`"
        return load(path, cls.from_dict, lambda got: no_effects(got, writer))

    def _level_for_people(self, level: float | None) -> float:
        """Return the level of intervals for people, or raise CV-P528 where there are none."""
        if not self.heterogeneous:
            raise refusal("CV-P528")
        return self.level if level is None else check_level(level)

    def _with_higher(self, X: Any) -> tuple[Floats, Floats]:
        columns = read_columns(X, self.study)
        return self._joined(self.basis.features(columns), columns)

    def _joined(self, features: Floats, columns: Mapping[str, Floats]) -> tuple[Floats, Floats]:
        """Return features and covariance with those of the higher functions beside them."""
        if self.higher is None:
            return features, self.covariance
        basis, variances = self.higher
        size, total = len(self.weights), len(self.weights) + len(variances)
        covariance = np.zeros((total, total))
        covariance[:size, :size] = self.covariance
        covariance[np.arange(size, total), np.arange(size, total)] = variances
        return np.concatenate((features, basis.features(columns)), axis=1), covariance

    def _around(self, features: Floats, covariance: Floats, factor: float) -> tuple[Floats, Floats]:
        basis_features = features[:, : len(self.weights)]
        middle = basis_features @ self.weights
        half = factor * deviations(features, covariance) + np.abs(self._shrunk(basis_features))
        return middle - half, middle + half

    def _shrunk(self, features: Floats) -> Floats:
        """Return by how much shrinkage moved the effect at every row of features."""
        if self.shrinkage is None:
            return np.zeros(len(features))
        return np.asarray(features @ self.shrinkage)


# Directions of less variance than this part of the largest are noise of rounding.
_NEGLIGIBLE = 1e-10
# Under this name a model keeps the p-value of the test that effects do not differ.
P_VALUE = "heterogeneity_p"
# Before anything is spent, in parts of the outcome's range: the standard deviation that effects are supposed to have
# between people, and that of outcomes given treatment and covariates.
PLAUSIBLE, TYPICAL_SD = 1 / 16, 1 / 6


def is_worthwhile(noise: float, functions: int, rows: int) -> bool:
    """Return whether a function is expected to be closer to effects of plausible difference than one number is.

    `noise` is that of its effects. Sampling is that of its weights but the first, which one number has too.
    """
    sampling = 2 * TYPICAL_SD * sqrt((functions - 1) / rows)
    return hypot(noise, sampling) <= PLAUSIBLE


def one_effect_model(study: Study, level: float, result: Result) -> CateModel:
    """Return a released average effect as a model; its interval is the result's at the asked level."""
    sd = result.uncertainty.half_width(level) / pointwise(level)
    noise = min(float(result.std_error.noise), sd)
    provenance = {
        name: value
        for name, value in result.provenance().items()
        if name not in ("treatment", "outcome", "population", "by_arm")
    }
    return CateModel(
        study=study,
        basis=constant_basis(),
        weights=np.array([result.estimate]),
        covariance=np.array([[sd**2]]),
        noise_covariance=np.array([[noise**2]]),
        heterogeneous=False,
        **provenance | {"level": level, "not_covered": (Caveat.NOT_FOR_PEOPLE, *result.not_covered)},
    )


@dataclass(frozen=True, slots=True, eq=False)
class Unshrunk:
    """Weights of an effect as measured, without a prior, and their covariance; their functions have these orders.

    The first is that of the constant, whose order is 0. `mean` are the mean features of the study's people, from
    public or released numbers.
    """

    weights: Floats
    covariance: Floats
    orders: Floats
    mean: Floats

    def heterogeneity_p_value(self) -> float:
        """Return the p-value of the hypothesis that effects do not differ: Wald's tests, and Bonferroni's bound.

        One is about the functions of first order, as if there were no others, the other about all of them.
        """
        information = _inverse(self.covariance)
        score = information @ self.weights
        kept = [np.flatnonzero(self.orders <= order) for order in dict.fromkeys((1.0, self.orders.max()))]
        p_values = []
        for members in kept:
            covariance = _inverse(information[np.ix_(members, members)])
            weights = (covariance @ score[members])[1:]
            z = float(weights @ _inverse(covariance[1:, 1:]) @ weights)
            p_values.append(float(chdtrc(len(weights), max(z, 0.0))) if len(weights) else 1.0)
        return min(1.0, len(p_values) * min(p_values))


def _inverse(matrix: Floats) -> Floats:
    """Return the inverse of a symmetric matrix, zero in directions that rounding made."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    kept = values > _NEGLIGIBLE * max(float(values.max(initial=0.0)), 0.0)
    return np.asarray((vectors[:, kept] / values[kept]) @ vectors[:, kept].T)


def fall_back_to_average(facts: Facts, measured: Unshrunk, *, level: float, automatic: bool) -> Facts:
    """Return the fields of a function, or of the average effect if noise and sampling explain how effects differ.

    Sampling and noise are both in the covariance that the test uses, at one minus the level of the intervals.

    Parameters
    ----------
    facts : Facts
        Fields of a `CateModel`.
    measured : Unshrunk
        Its weights before they were shrunk.
    level : float
        Confidence level of intervals.
    automatic : bool
        Whether the average may take the function's place: a function that was asked for stays one.
    """
    p = measured.heterogeneity_p_value()
    facts = Facts(facts, details=facts["details"] | {P_VALUE: p})
    if not automatic or p <= 1 - level:
        return facts
    mean = measured.mean
    shrinkage = facts.get("shrinkage")
    return Facts(
        facts,
        method=FunctionAverage(facts["method"]),
        basis=constant_basis(),
        weights=np.array([mean @ facts["weights"]]),
        covariance=np.array([[mean @ facts["covariance"] @ mean]]),
        noise_covariance=np.array([[mean @ facts["noise_covariance"] @ mean]]),
        not_covered=(Caveat.NOT_FOR_PEOPLE, *facts["not_covered"]),
        heterogeneous=False,
        higher=None,
        shrinkage=None if shrinkage is None else np.array([mean @ shrinkage]),
    )
