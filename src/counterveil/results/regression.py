"""Released moments, regressions and effects of compliers from them; intervals include the privacy noise.

Formulas: "y ~ treat + age + treat:age", and with instruments "y ~ age + [dose ~ offer]".

As in statsmodels and linearmodels: a constant is included unless "0" or "- 1" is among the terms, a*b stands for a, b
and a:b, and what is in brackets is explained by instruments. C(site) is a column of labels, I(age**2) a square and
log(income) a logarithm; what stands after | is adjusted for and not shown, as in pyfixest. Names with other signs in
them are quoted with backticks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from math import inf, isfinite, sqrt
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.special import fdtrc, stdtr, stdtrit

from counterveil.errors import CounterveilError, excerpt, refusal, shown
from counterveil.inference.anderson_rubin import anderson_rubin, joint_p_value, joint_statistic
from counterveil.inference.estimates import truncate
from counterveil.inference.linear_fit import LinearFit, least_squares, two_stage, with_robust_errors
from counterveil.inference.moments import NoisyMoments
from counterveil.numerics.arrays import Ends, Floats
from counterveil.privacy import Budget, Guarantee, Unit, exact
from counterveil.privacy.caveats import Caveat, ClippedOutliers, Fact, written
from counterveil.report import View, compliance_view, moments_view, regression_text, regression_view
from counterveil.report.regression import INTENTION_TO_TREAT, TAKE_UP, mean_facts
from counterveil.report.text import probability, rounded
from counterveil.results.decisions import Decided
from counterveil.results.effect import StdError, check_level, load, read, save, write
from counterveil.results.figures import Figures
from counterveil.results.shown import Shown
from counterveil.results.site_bounds import Bound, Breach, Equal, PublicShape, SiteFigure

_NAME = r"\s*(`[^`]+`|[^\s~+*:|\[\]`()-]+)\s*"
_CALLS = (
    re.compile(rf"`[^`]*`|(?:np\.)?(?P<call>log)\({_NAME}\)"),
    re.compile(
        rf"`[^`]*`|\b(?P<call>C|i|factor|as\.factor)\({_NAME}\)|\b(?P<square>I)\({_NAME}(?:\*\*|\^)\s*2\s*\)"
    ),
)
_REFERENCE = re.compile(
    rf"\b(?:C|i|factor)\({_NAME},[^)]*?(?:Treatment\(|ref\w*\s*=)[^'\"]*['\"]([^'\"]*)['\"]"
)
_POWER = re.compile(r"(.+?)(?:\^|\*\*)2")
_FUNCTION = re.compile(r"(?:np\.)?([A-Za-z]\w*)\((.*)")
_TOKEN = re.compile(r"`([^`]+)`|([~+*:|\[\]-])|([^\s~+*:|\[\]`-][^\s~+*:|\[\]`]*)")
_LONGEST = 10_000


@dataclass(frozen=True, slots=True)
class Formula:
    """What is regressed on what, by names of columns; `endogenous` are explained by `instruments`.

    `absorbed` are regressors too, whose coefficients are not shown.
    """

    response: str
    regressors: tuple[str, ...]
    constant: bool = True
    endogenous: tuple[str, ...] = ()
    instruments: tuple[str, ...] = ()
    absorbed: tuple[str, ...] = ()


def written_out(text: str, groups: Mapping[str, tuple[str, ...]]) -> str:
    """Return a formula with C(a), I(a**2) and log(a) as names and products; C() of numbers is CV-P791."""

    def plain(match: re.Match[str]) -> str:
        found = match.groupdict()
        if found["call"] is None and not found.get("square"):
            return match[0]
        name = next(group for group in match.groups()[1:] if group not in (None, "I")).strip("`")
        if found["call"] == "log":
            return f"`log({name})`"
        if found["call"] and name not in groups:
            raise refusal("CV-P791", groups=", ".join(map(repr, groups)) or "none", name=name)
        return f"`{name}`" if found["call"] else f"`{name}`:`{name}`"

    reference = _REFERENCE.search(text)
    if reference is not None:
        raise refusal("CV-P783r", text=text, name=reference[1].strip("` "), label=reference[2])
    for calls in _CALLS:
        text = calls.sub(plain, text)
    return text


def parse_formula(text: str, columns: Sequence[str], groups: dict[str, tuple[str, ...]]) -> Formula:
    """Return the formula in names of columns, or raise CV-P783; a name in `groups` stands for its columns."""
    if not isinstance(text, str) or len(text) > _LONGEST:
        raise _unreadable(text, "a text with one ~")
    response_side, tilde, term_side = _outside_brackets(written_out(text, groups))
    if "|" in term_side and "~" in term_side and "[" not in term_side:
        terms, _, instrumented = term_side.rpartition("|")
        formula = f"{response_side.strip()} ~ {terms.strip()} + [{instrumented.strip()}]"
        raise refusal("CV-P783v", text=text, formula=formula.replace("`", ""))
    if not tilde:
        raise _unreadable(text, "no ~")
    response = _columns(response_side, columns, groups, text)
    if len(response) != 1:
        raise _unreadable(text, f"{len(response)} columns on the left of ~")
    term_side, bar, fixed = term_side.partition("|")
    absorbed = _columns(fixed, columns, groups, text) if bar else ()
    plain, inside = _without_brackets(term_side, text)
    if any(not part.strip() for part in term_side.split("+")):
        raise _unreadable(text, "a side, or an end, without a column")
    constant, terms = _constant(plain)
    regressors = _columns(terms, columns, groups, text) if terms.strip() else ()
    endogenous: tuple[str, ...] = ()
    instruments: tuple[str, ...] = ()
    if inside is not None:
        explained, between, explaining = inside.partition("~")
        if not between:
            raise _unreadable(text, "no ~ between the brackets")
        endogenous, instruments = (_columns(part, columns, groups, text) for part in (explained, explaining))
        if len(instruments) < len(endogenous):
            raise _unreadable(text, f"{len(instruments)} instruments for {len(endogenous)} columns")
    used = (*response, *regressors, *endogenous, *instruments, *absorbed)
    if len(set(used)) < len(used):
        raise _unreadable(text, "a column that is named twice")
    if not regressors and not endogenous and not constant:
        raise _unreadable(text, "nothing on the right of ~")
    if absorbed and not constant:
        raise _unreadable(text, "| without a constant")
    return Formula(response[0], regressors, constant, endogenous, instruments, absorbed)


def _outside_brackets(text: str) -> tuple[str, str, str]:
    before = text.partition("[")[0]
    tilde = before.find("~")
    return (text, "", "") if tilde < 0 else (text[:tilde], "~", text[tilde + 1 :])


def _without_brackets(right: str, text: str) -> tuple[str, str | None]:
    """Return the terms outside brackets, and what is inside them, None where there are none."""
    if "[" not in right:
        return right, None
    before, _, rest = right.partition("[")
    inside, closed, after = rest.partition("]")
    if not closed or "[" in after:
        raise _unreadable(text, "brackets that do not match")
    return " + ".join(part.strip(" +") for part in (before, after) if part.strip(" +")), inside


def _constant(terms: str) -> tuple[bool, str]:
    """Return whether there is a constant, and the terms without what says so."""
    signs = re.sub(r"-\s*1\b", "+ 0", terms)
    pieces = [piece.strip() for piece in signs.split("+")]
    return "0" not in pieces, " + ".join(piece for piece in pieces if piece not in ("0", "1", ""))


def _columns(
    terms: str, columns: Sequence[str], groups: dict[str, tuple[str, ...]], text: str
) -> tuple[str, ...]:
    """Return the columns that terms with + between them stand for."""
    expanded: list[str] = []
    for term in _terms(terms, text):
        expanded += [name for name in _expanded(term, columns, groups) if name not in expanded]
    return tuple(expanded)


def _terms(side: str, text: str) -> Iterator[tuple[list[str], str]]:
    """Yield the names of every term, and the sign between them: nothing, ":" or "*"."""
    names: list[str] = []
    sign, wanted, position = "", True, 0
    stripped = side.strip()
    while position < len(stripped):
        match = _TOKEN.match(stripped, position)
        if match is None:
            raise _unreadable(text, excerpt(stripped, position))
        quoted, operator, name = match.groups()
        if operator is None:
            if not wanted:
                raise _unreadable(text, f"{shown(name or quoted)} without + before it")
            names, wanted = [*names, quoted or name], False
        elif wanted or operator not in "+:*" or (operator != "+" and len(names) == 2):
            raise _unreadable(text, f"{operator!r} where a column should be")
        else:
            wanted = True
            if operator == "+":
                yield names, sign
                names, sign = [], ""
            else:
                sign = operator
        position = match.end()
        position += len(stripped[position:]) - len(stripped[position:].lstrip())
    if wanted:
        raise _unreadable(text, "a side, or an end, without a column")
    yield names, sign


def _expanded(
    term: tuple[list[str], str], columns: Sequence[str], groups: dict[str, tuple[str, ...]]
) -> Iterator[str]:
    """Yield the columns of a term: one name, a product, or both names and their product."""
    names, sign = term
    lists = []
    for name in names:
        members = groups.get(name, (name,))
        if members[0] not in columns:
            raise _not_released(name, columns)
        lists.append(members)
    if sign != ":":
        for members in lists:
            yield from members
    if sign:
        for first in lists[0]:
            for second in lists[1]:
                yield _product(first, second, columns)


def _not_released(name: str, columns: Sequence[str]) -> CounterveilError:
    """Return CV-P784, with the line to write where it is clear what was meant."""
    listed = ", ".join(map(repr, columns))
    power, function = _POWER.fullmatch(name), _FUNCTION.fullmatch(name)
    if power is not None:
        return refusal("CV-P784t", columns=listed, name=name, term=f"I({power[1]}**2)")
    if function is not None and function[1] == "log":
        return refusal("CV-P784t", columns=listed, name=name, term=name)
    if function is not None:
        return refusal("CV-P784f", columns=listed, name=name)
    return refusal("CV-P784", columns=listed, name=name)


def _product(first: str, second: str, columns: Sequence[str]) -> str:
    for name in (f"{first}:{second}", f"{second}:{first}"):
        if name in columns:
            return name
    raise refusal(
        "CV-P782",
        columns=", ".join(map(repr, (name for name in columns if ":" in name))) or "no interactions",
        got=repr(f"{first}:{second}"),
        first=first + ":" + second,
    )


def _unreadable(text: object, got: str) -> CounterveilError:
    return refusal("CV-P783", text=text, got=got)


CONSTANT = "Intercept"
_PROVENANCE = ("guarantee", "spent", "not_covered")
# First-stage F statistics below this are called weak (Stock, Yogo 2005).
WEAK = 10.0


@dataclass(frozen=True, slots=True, repr=False)
class Coefficient(Decided):
    """One coefficient, or a combination of several, with its error, privacy noise included.

    Attributes
    ----------
    name : str
        Term, or combination of terms.
    estimate : float
        Released coefficient, in units of the response per unit of the term.
    std_error : StdError
        Standard error: total, sampling part, privacy-noise part.
    statistic : float
        Estimate over its standard error.
    p_value : float
        Two-sided p-value of zero, by Student's t; of one endogenous column by Anderson and Rubin's test.
    level : float
        Default confidence level of intervals, in (0, 1).
    ends : callable
        Ends of the interval of a level.
    p_at : callable or None
        Two-sided p-value of a value; None where there is none.

    Examples
    --------
    >>> import counterveil as cv
    >>> trial = cv.datasets.lalonde()
    >>> ask = {"protects": "outcome", "epsilon": 4, "delta": 1e-6, "noise": cv.SeededNoise(1)}
    >>> moments = cv.moments(trial.frame, trial.study, **ask)
    >>> fit = moments.regress("re78 ~ train + age")
    >>> train = fit.coefficient("train")
    >>> low, high = train.interval(0.9)
    >>> low < train.estimate < high
    True
    """

    name: str
    estimate: float
    std_error: StdError
    statistic: float
    p_value: float
    level: float
    ends: Callable[[float], Ends] = field(compare=False)
    p_at: Callable[[float], float] | None = field(default=None, compare=False)

    def interval(self, level: float | None = None) -> Ends:
        """Return the two ends of an interval that covers sampling error and privacy noise together.

        Parameters
        ----------
        level : float, optional
            Confidence level, in (0, 1). Default: that of the result.

        Returns
        -------
        tuple of (float, float)
            Lower and upper end, in units of the estimate; infinite where noise hides the coefficient.

        Raises
        ------
        CounterveilError
            A level outside (0, 1): CV-P015.
        """
        return self.ends(self.level if level is None else check_level(level))

    def _ends(self, level: float | None) -> tuple[float, Ends, float]:
        return self.estimate, self.interval(level), self.level if level is None else level

    def _p_at(self, value: float, level: float | None) -> float:  # noqa: ARG002 - of every level the same
        if self.p_at is None:
            raise refusal("CV-P795", name=self.name)
        return self.p_at(value)

    def figures(self) -> Figures:
        """Return the numbers of a table, at the default level.

        Returns
        -------
        Figures
            Estimate, errors, interval, statistic and p-value.
        """
        return Figures(
            estimate=self.estimate,
            errors=self.std_error.parts,
            level=self.level,
            ends=self.interval(),
            p_value=self.p_value,
            statistic=self.statistic,
        )

    def __repr__(self) -> str:
        error = self.std_error.total
        ends = ", ".join(rounded(end, error) for end in self.interval())
        return (
            f"<Coefficient: {self.name} {rounded(self.estimate, error)} [{ends}], "
            f"std. error {rounded(error, error)}, p {probability(self.p_value)}>"
        )

    def facts(self) -> dict[str, Any]:
        """Return everything as JSON-ready facts.

        Returns
        -------
        dict
            ``name``, ``estimate``, ``std_error``, ``statistic``, ``p_value`` and ``interval``.
        """
        low, high = self.interval()
        return {
            "name": self.name,
            "estimate": self.estimate,
            "std_error": self.std_error.facts(),
            "statistic": self.statistic,
            "p_value": self.p_value,
            "interval": {"low": low, "high": high},
        }


@dataclass(frozen=True, slots=True)
class WaldTest:
    """A joint F test of linear restrictions.

    Attributes
    ----------
    statistic : float
        F statistic.
    pvalue : float
        P(F > statistic), privacy noise included.
    df_num : int
        Number of restrictions.
    df_denom : float
        Degrees of freedom of the errors.
    """

    statistic: float
    pvalue: float
    df_num: int
    df_denom: float


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Regression(Shown):
    """Coefficients of a regression among released columns: what ``moments.regress(...)`` returns.

    Nothing that its methods do spends budget. Names are those of statsmodels where they mean the same.

    Attributes
    ----------
    formula : str
        The formula that was asked.
    method : {"OLS", "2SLS"}
        Least squares, or two-stage least squares.
    response : str
        Column that is explained.
    terms : tuple of str
        Columns it is regressed on, in the order of the coefficients.
    fit : LinearFit
        Coefficients and their covariances from sampling and from noise.
    rows : int
        Number of rows, public.
    level : float
        Default confidence level of intervals, in (0, 1).
    guarantee : Guarantee
        That of the moments.
    spent : Budget
        What the moments cost; a regression costs nothing more.
    not_covered : tuple of Caveat or Detail
        What intervals do not cover, the worst first.
    again : callable
        Returns the same regression at another level.
    endogenous : tuple of str
        Columns that are explained by instruments.
    instruments : tuple of str
        The instruments.
    first_stage : float or None
        F statistic of the instruments for one endogenous column, noise included; below 10 they are called
        weak.
    anderson_rubin : tuple of (float, float) pairs, or None
        Values of the endogenous column's coefficient that the instruments do not rule out: one interval, two
        unbounded ones, or none.
    anderson_rubin_p : float or None
        P-value of no effect that belongs to them.
    farthest : float or None
        How far a coefficient can be at all, but for the constant, in roots of ``fit.unit``; None where that
        is not known.
    absorbed : tuple of str
        Terms after ``|``: adjusted for and not shown.
    cov_type : {"nonrobust", "HC1"}
        Errors of equal variance, or robust to unequal ones.

    Notes
    -----
    With released moments A of the regressors and q of regressors and response, b = A^-1 q. Its covariance is
    that of sampling, s^2 A^-1 / n (HC1: the sandwich), plus that of the noise in A and q at the fitted
    residual. Intervals are the values whose distance from b the noise in A does not explain either, as
    Fieller's are.

    References
    ----------
    .. [1] Anderson, T. W. and Rubin, H. (1949). Estimation of the parameters of a single equation in a
       complete system of stochastic equations. Annals of Mathematical Statistics 20, 46-63.

    Examples
    --------
    >>> import counterveil as cv
    >>> trial = cv.datasets.lalonde()
    >>> ask = {"protects": "outcome", "epsilon": 4, "delta": 1e-6, "noise": cv.SeededNoise(1)}
    >>> moments = cv.moments(trial.frame, trial.study, **ask)
    >>> fit = moments.regress("re78 ~ train + age")
    >>> list(fit.params.index)
    ['Intercept', 'train', 'age']
    >>> fit.conf_int().shape
    (3, 2)
    >>> fit.wald_test("train = 0, age = 0").df_num
    2
    """

    formula: str
    method: str
    response: str
    terms: tuple[str, ...]
    fit: LinearFit
    rows: int
    level: float
    guarantee: Guarantee
    spent: Budget
    not_covered: tuple[Fact, ...]
    again: Callable[[float], Regression]
    endogenous: tuple[str, ...] = ()
    instruments: tuple[str, ...] = ()
    first_stage: float | None = None
    anderson_rubin: tuple[Ends, ...] | None = None
    anderson_rubin_p: float | None = None
    farthest: float | None = None
    absorbed: tuple[str, ...] = ()
    cov_type: str = "nonrobust"

    @property
    def coefficients(self) -> tuple[Coefficient, ...]:
        """Coefficients in the order of `terms`, without absorbed ones."""
        return tuple(self._one(name) for name in self.terms if name not in self.absorbed)

    def coefficient(self, name: str) -> Coefficient:
        """Return the coefficient of a term.

        Parameters
        ----------
        name : str
            One of `terms`; functions such as ``"I(age**2)"`` may be written as in the formula.

        Returns
        -------
        Coefficient
            Estimate, standard error, interval and p-value.

        Raises
        ------
        CounterveilError
            No term of that name: CV-P785.
        """
        return self._one(self._known(name))

    @property
    def params(self) -> Any:
        """Coefficients by name, as a pandas series."""
        return self._series(lambda one: one.estimate)

    @property
    def bse(self) -> Any:
        """Standard errors by name, sampling error and privacy noise together, as a pandas series."""
        return self._series(lambda one: one.std_error.total)

    @property
    def tvalues(self) -> Any:
        """Coefficients over their standard errors, by name, as a pandas series."""
        return self._series(lambda one: one.statistic)

    @property
    def pvalues(self) -> Any:
        """Two-sided p-values of zero by name, privacy noise included, as a pandas series."""
        return self._series(lambda one: one.p_value)

    def conf_int(self, alpha: float | None = None) -> Any:
        """Return intervals of all coefficients as a frame, as statsmodels does.

        Parameters
        ----------
        alpha : float, optional
            One minus the confidence level, in (0, 1). Default: that of the result.

        Returns
        -------
        DataFrame
            Lower ends in column 0, upper ends in column 1, by term.

        Raises
        ------
        CounterveilError
            A level outside (0, 1): CV-P015. pandas is not installed: CV-E070.

        Examples
        --------
        >>> import counterveil as cv
        >>> trial = cv.datasets.lalonde()
        >>> ask = {"protects": "outcome", "epsilon": 4, "delta": 1e-6, "noise": cv.SeededNoise(1)}
        >>> moments = cv.moments(trial.frame, trial.study, **ask)
        >>> fit = moments.regress("re78 ~ train + age")
        >>> bool((fit.conf_int()[0] < fit.conf_int()[1]).all())
        True
        """
        ends = self.interval(1 - alpha if isinstance(alpha, int | float) else alpha)
        return _pandas().DataFrame.from_dict(ends, orient="index", columns=[0, 1])

    def cov_params(self) -> Any:
        """Return the covariance of the coefficients, sampling error and privacy noise together.

        Returns
        -------
        DataFrame
            Covariances by term; infinite where noise hides whether the regressors determine the coefficients.

        Raises
        ------
        CounterveilError
            pandas is not installed: CV-E070.
        """
        names = [one.name for one in self.coefficients]
        kept = [self.terms.index(name) for name in names]
        values = self.fit.covariance if self.identified else np.full(self.fit.covariance.shape, inf)
        return _pandas().DataFrame(values[np.ix_(kept, kept)], index=names, columns=names)

    def wald_test(self, restrictions: str | Sequence[Sequence[float]]) -> WaldTest:
        """Return the joint F test of linear restrictions.

        Parameters
        ----------
        restrictions : str or matrix of floats
            Restrictions such as ``"a = b, age = 0"``, or a matrix R of R b = 0 with a column for every shown
            term.

        Returns
        -------
        WaldTest
            F statistic, p-value and degrees of freedom; privacy noise included.

        Raises
        ------
        CounterveilError
            Restrictions that cannot be read: CV-P783. Terms that are not there, or a matrix of another shape:
            CV-P785.

        Notes
        -----
        F = (R b - r)' (R C R')^- (R b - r) / k for k restrictions, with C the covariance of `cov_params`.

        Examples
        --------
        >>> import counterveil as cv
        >>> trial = cv.datasets.lalonde()
        >>> ask = {"protects": "outcome", "epsilon": 4, "delta": 1e-6, "noise": cv.SeededNoise(1)}
        >>> moments = cv.moments(trial.frame, trial.study, **ask)
        >>> fit = moments.regress("re78 ~ train + age")
        >>> test = fit.wald_test("train = 0, age = 0")
        >>> 0 <= test.pvalue <= 1
        True
        """
        if isinstance(restrictions, str):
            text = written_out(restrictions, dict.fromkeys(self.terms, ())).replace("`:`", ":")
            pairs = [_restriction(part, self.terms) for part in _unquoted(",", text)]
            rows, values = np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs])
        else:
            shown_terms = [position for position, name in enumerate(self.terms) if name not in self.absorbed]
            try:
                given = np.atleast_2d(np.asarray(restrictions, dtype=np.float64))
            except (TypeError, ValueError):
                given = np.full((1, 1), np.nan)
            if given.shape != (len(given), len(shown_terms)) or not np.isfinite(given).all():
                raise refusal("CV-P785", terms=", ".join(map(repr, self.terms)), name=shown(restrictions))
            rows, values = np.zeros((len(given), len(self.terms))), np.zeros(len(given))
            rows[:, shown_terms] = given
        off, covariance = rows @ self.fit.coefficients - values, rows @ self.fit.covariance @ rows.T
        freedom = min(self.fit.freedom_of(row) for row in rows)
        statistic = 0.0
        if self.identified:
            statistic = float(off @ np.linalg.pinv(covariance, hermitian=True) @ off) / len(rows)
        return WaldTest(statistic, float(fdtrc(len(rows), freedom, statistic)), len(rows), freedom)

    def _series(self, value: Callable[[Coefficient], float]) -> Any:
        values = {coefficient.name: value(coefficient) for coefficient in self.coefficients}
        return _pandas().Series(values, dtype="float64")

    @property
    def identified(self) -> bool:
        """Whether the released moments determine the coefficients; if not, intervals are unbounded."""
        return self.fit.identified

    @property
    def residual_variance(self) -> float:
        """Residual variance of the response, in its squared units."""
        return self.fit.variance

    @property
    def r_squared(self) -> float:
        """Share of the response's variance that the regressors explain.

        Without a constant it is that of the mean square. It can be below 0 by noise, and with instruments.
        """
        unexplained = self.fit.variance * self.fit.freedom / max(self.rows, 1)
        return 1 - unexplained / self.fit.total if self.fit.total > 0 else float("nan")

    def interval(self, level: float | None = None) -> dict[str, Ends]:
        """Return an interval for every coefficient, by name.

        Parameters
        ----------
        level : float, optional
            Confidence level, in (0, 1). Default: that of the result.

        Returns
        -------
        dict of str to tuple of (float, float)
            Lower and upper end.

        Raises
        ------
        CounterveilError
            A level outside (0, 1): CV-P015.
        """
        fit = self if level is None else self.again(check_level(level))
        return {coefficient.name: coefficient.interval() for coefficient in fit.coefficients}

    def combination(self, weights: Mapping[str, float], level: float | None = None) -> Coefficient:
        """Return a sum of coefficients, each multiplied by its weight.

        Parameters
        ----------
        weights : mapping of str to float
            Weights by term, such as ``{"treat": 1, "treat:age": 40}``.
        level : float, optional
            Confidence level, in (0, 1). Default: that of the result.

        Returns
        -------
        Coefficient
            The sum, with its error.

        Raises
        ------
        CounterveilError
            A level outside (0, 1): CV-P015. A term that is not there: CV-P785.

        Examples
        --------
        >>> import counterveil as cv
        >>> trial = cv.datasets.lalonde()
        >>> ask = {"protects": "outcome", "epsilon": 4, "delta": 1e-6, "noise": cv.SeededNoise(1)}
        >>> moments = cv.moments(trial.frame, trial.study, **ask)
        >>> fit = moments.regress("re78 ~ train + age")
        >>> fit.combination({"train": 1, "age": 10}).name
        'train + 10 age'
        """
        vector = np.zeros(len(self.terms))
        given = weights.items() if hasattr(weights, "items") else [(shown(weights), 1)]
        by_term = {self._known(name): float(exact(weight, name)) for name, weight in given}
        for name, weight in by_term.items():
            vector[self.terms.index(name)] = weight
        return self._coefficient(_sum(by_term), vector, self.level if level is None else check_level(level))

    def partial(self, column: str, at: Mapping[str, float] | None = None) -> Coefficient:
        """Return the effect of one more unit of a column; its interactions count.

        Parameters
        ----------
        column : str
            Column whose effect is asked.
        at : mapping of str to float, optional
            Values of the columns that it interacts with.

        Returns
        -------
        Coefficient
            With ``y ~ treat*age``, ``partial("treat", at={"age": 40})`` is treat + 40 treat:age.

        Raises
        ------
        CounterveilError
            A column that is no term: CV-P785. An interaction without a value: CV-P786.
        """
        values: Any = at if hasattr(at, "keys") else {}
        weights = {self._known(column): 1.0}
        for term in self.terms:
            factors = term.split(":")
            if len(factors) == 2 and column in factors:
                other = factors[1] if factors[0] == column else factors[0]
                if other not in values:
                    raise refusal("CV-P786", column=column, other=other)
                # The square of a column changes twice as fast as its value.
                weights[term] = float(exact(values[other], other)) * (
                    2.0 if factors[0] == factors[1] else 1.0
                )
        return self.combination(weights)

    def _known(self, name: str) -> str:
        if name in self.terms:
            return name
        plain = written_out(str(name), dict.fromkeys(self.terms, ())).replace("`", "")
        if plain in self.terms:
            return plain
        raise refusal("CV-P785", terms=", ".join(map(repr, self.terms)), name=name)

    def _one(self, name: str) -> Coefficient:
        vector = np.zeros(len(self.terms))
        vector[self.terms.index(name)] = 1.0
        coefficient = self._coefficient(name, vector, self.level)
        if not self.anderson_rubin or self.anderson_rubin_p is None or (name,) != self.endogenous:
            return coefficient
        # The t statistic would contradict this interval where instruments are weak.
        return replace(coefficient, p_value=self.anderson_rubin_p, ends=self._not_ruled_out, p_at=None)

    def _not_ruled_out(self, level: float) -> Ends:
        fit = self if level == self.level else self.again(level)
        lows, highs = zip(*(fit.anderson_rubin or ((-inf, inf),)), strict=True)
        return min(lows), max(highs)

    def _coefficient(self, name: str, vector: Floats, level: float) -> Coefficient:
        released, errors = float(vector @ self.fit.coefficients), StdError(*self.fit.error(vector))
        statistic = released / errors.total if errors.total > 0 else (inf if released else 0.0)
        freedom, limits = self.fit.freedom_of(vector), None
        if self.farthest is not None and isfinite(errors.sampling) and not vector[self._constant].any():
            # Sums of outcomes times public weights: proof in `outcome_moments.proof.md`.
            most = self.farthest * sqrt(max(float(vector @ self.fit.unit @ vector), 0.0))
            limits = (-most, most)

        def ends(level: float) -> Ends:
            below, above = self.fit.interval_distances(vector, float(stdtrit(freedom, (1 + level) / 2)))
            return truncate((released - below, released + above), limits)

        def p_at(value: float) -> float:
            if not isfinite(errors.total):
                return 1.0
            return float(2 * stdtr(freedom, -self.fit.standard_errors(vector, released - value)))

        estimate = truncate((released, released), limits)[0]
        return Coefficient(name, estimate, errors, statistic, p_at(0.0), level, ends, p_at)

    @property
    def _constant(self) -> list[int]:
        return [position for position, name in enumerate(self.terms) if name == CONSTANT]

    def _rows(self) -> list[dict[str, Any]]:
        """Return one dictionary a coefficient, with the names that R's `broom` uses, dots replaced by underscores."""
        return [
            {
                "term": coefficient.name,
                "response": self.response,
                "method": self.method,
                **coefficient.figures().row(),
                "epsilon": float(self.spent.epsilon),
                "delta": float(self.spent.delta),
            }
            for coefficient in self.coefficients
        ]

    def report_facts(self) -> dict[str, Any]:
        """Return what is printed, as facts.

        Returns
        -------
        dict
            Facts by name; numbers may be infinite.
        """
        warning = self.guarantee.warning
        plain = (
            *(
                "formula",
                "method",
                "response",
                "rows",
                "level",
                "residual_variance",
                "r_squared",
                "identified",
            ),
            *("cov_type", "first_stage"),
        )
        attributes = {name: getattr(self, name) for name in plain}
        return (
            ({"guarantee_warning": warning} if warning else {})
            | attributes
            | {
                "coefficients": [one.facts() for one in self.coefficients],
                "centred": self.fit.centred,
                "freedom": self.fit.freedom,
                "endogenous": list(self.endogenous),
                "instruments": list(self.instruments),
                "absorbed": [name for name in self.absorbed if name != CONSTANT],
                "weak": self.first_stage is not None and self.first_stage < WEAK,
                "anderson_rubin": None if self.anderson_rubin is None else [*map(list, self.anderson_rubin)],
                "guarantee": self.guarantee.to_dict(),
                "spent": self.spent.to_dict(),
                "not_covered": [written(one) for one in self.not_covered],
            }
        )

    def view(self, full: bool = False) -> View:
        """Return what is shown: coefficients, the guarantee and what is not covered.

        Parameters
        ----------
        full : bool, default False
            True for everything, False for a summary.

        Returns
        -------
        View
            Title, tables and lines of text, as `summary`, `full` and `to_html` print them.
        """
        return regression_view(self.report_facts(), full)

    def summary(self) -> str:
        """Return the coefficients as statsmodels prints them, with the noise in each standard error.

        Returns
        -------
        str
            What ``print(result)`` prints.
        """
        return regression_text(self.report_facts())

    def __repr__(self) -> str:
        first = ", ".join(f"{one.name} {one.estimate:.4g}" for one in self.coefficients[:3])
        return f"<Regression: {self.formula}; {first}; {self.spent}>"


def _pandas() -> Any:
    """Return pandas, or raise CV-E070."""
    try:
        return import_module("pandas")
    except ImportError:
        raise refusal("CV-E070") from None


_PART = re.compile(
    r"\s*([+-]?)\s*(?:([0-9.]+(?:e-?[0-9]+)?)\s*\*?\s*)?(`[^`]+`|[^\s+*`=0-9.-][^\s+*`=-]*)?\s*"
)


def _unquoted(sign: str, text: str) -> list[str]:
    """Return what stands between signs that are not inside backticks."""
    return re.split(rf"{sign}(?=(?:[^`]*`[^`]*`)*[^`]*$)", text)


def _restriction(text: str, terms: Sequence[str]) -> tuple[Floats, float]:
    """Return weights and value of one restriction such as "a - 2 b = 1"; no sign for it is = 0."""
    weights, value = np.zeros(len(terms)), 0.0
    sides = _unquoted("=", text)
    if len(sides) > 2 or not all(map(str.strip, sides)):
        raise _unreadable(text, "not one side, or two")
    for side, sign in zip(sides, (1.0, -1.0), strict=False):
        position = 0
        while position < len(side):
            match = _PART.match(side, position)
            if match is None or match.end() == position or not (match[2] or match[3]):
                raise _unreadable(text, excerpt(side, position))
            try:
                number = sign * (-1.0 if match[1] == "-" else 1.0) * float(match[2] or 1)
            except ValueError:
                raise _unreadable(text, excerpt(side, position)) from None
            name = (match[3] or "").strip("`")
            if not name:
                value -= number
            elif name in terms:
                weights[terms.index(name)] += number
            else:
                raise refusal("CV-P785", terms=", ".join(map(repr, terms)), name=name)
            position = match.end()
    if not weights.any() or not isfinite(value + weights.sum()):
        raise _unreadable(text, "no term")
    return weights, value


def _sum(weights: Mapping[str, float]) -> str:
    """Return a weighted sum as it is written: "treat + 40 treat:age"."""
    text = ""
    for name, weight in weights.items():
        sign = "-" if weight < 0 else "+"
        term = name if abs(weight) == 1 else f"{abs(weight):g} {name}"
        text += f" {sign} {term}" if text else term if sign == "+" else f"-{term}"
    return text


@dataclass(frozen=True, slots=True, repr=False)
class Compliance(Shown):
    """Three effects from one release: what ``moments.compliance(...)`` returns.

    They are those of assignment on the outcome and on receipt, and of receipt on the outcome of compliers.

    Attributes
    ----------
    assigned : str
        Column that was randomised.
    received : str
        Column that says who received the treatment.
    outcome : str
        Column that is explained.
    on_outcome : Regression
        Of the outcome on assignment.
    on_receipt : Regression
        Of receipt on assignment.
    two_stage : Regression
        Of the outcome on receipt, with assignment as its instrument.

    Notes
    -----
    The effect on compliers is the ratio of the other two [1]_; its Anderson-Rubin interval holds however few
    comply.

    References
    ----------
    .. [1] Angrist, J. D., Imbens, G. W. and Rubin, D. B. (1996). Identification of causal effects using
       instrumental variables. Journal of the American Statistical Association 91, 444-455.
    """

    assigned: str
    received: str
    outcome: str
    on_outcome: Regression
    on_receipt: Regression
    two_stage: Regression

    @property
    def guarantee(self) -> Guarantee:
        """Guarantee of the moments."""
        return self.two_stage.guarantee

    @property
    def spent(self) -> Budget:
        """What the moments cost."""
        return self.two_stage.spent

    @property
    def intention_to_treat(self) -> Coefficient:
        """Effect of assignment on the outcome, in its units."""
        return replace(self.on_outcome.coefficient(self.assigned), name=INTENTION_TO_TREAT)

    @property
    def take_up(self) -> Coefficient:
        """Effect of assignment on receipt: the share of compliers."""
        return replace(self.on_receipt.coefficient(self.assigned), name=TAKE_UP)

    @property
    def complier_effect(self) -> Coefficient:
        """Effect of receipt on the outcome of compliers, with an Anderson-Rubin interval."""
        return replace(self.two_stage.coefficient(self.received), name="complier effect")

    @property
    def table(self) -> tuple[Coefficient, ...]:
        """Intention to treat, take-up and complier effect."""
        return self.intention_to_treat, self.take_up, self.complier_effect

    def _rows(self) -> list[dict[str, Any]]:
        """Return one dictionary an effect, with the names that R's `broom` uses, dots replaced by underscores."""
        fits = (self.on_outcome, self.on_receipt, self.two_stage)
        names = (self.assigned, self.assigned, self.received)
        rows = []
        for effect, fit, name in zip(self.table, fits, names, strict=True):
            row = next(row for row in fit._rows() if row["term"] == name)
            rows.append(row | {"effect": effect.name})
        return rows

    def report_facts(self) -> dict[str, Any]:
        """Return what is printed, as facts.

        Returns
        -------
        dict
            Facts by name; numbers may be infinite.
        """
        shared = self.two_stage.report_facts()
        names = ["guarantee_warning", "rows", "level", "first_stage", "weak", "anderson_rubin"]
        kept = {*shared} & {*names, *_PROVENANCE}
        return {name: shared[name] for name in shared if name in kept} | {
            "assigned": self.assigned,
            "received": self.received,
            "outcome": self.outcome,
            "effects": [one.facts() for one in self.table],
        }

    def view(self, full: bool = False) -> View:
        """Return what is shown: the three effects, what they assume, the guarantee.

        Parameters
        ----------
        full : bool, default False
            True for everything, False for a summary.

        Returns
        -------
        View
            Title, tables and lines of text, as `summary`, `full` and `to_html` print them.
        """
        return compliance_view(self.report_facts(), full)

    def __repr__(self) -> str:
        shown = ", ".join(f"{one.name} {one.estimate:.4g}" for one in self.table)
        return f"<Compliance with {self.assigned}: {shown}; {self.two_stage.spent}>"


Matrix = tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class RobustMiddle:
    """The released middle of one regression's sandwich, in coordinates with uncorrelated regressors.

    Attributes
    ----------
    formula : str
        The regression.
    turn : tuple of tuple of float
        From regressors to these coordinates.
    matrix : tuple of tuple of float
        Mean of x x' e^2 with squared weights of rows, as released.
    noise_sd : float
        Standard deviation of its noise off the diagonal.
    """

    formula: str
    turn: Matrix
    matrix: Matrix
    noise_sd: float

    def errors_of(self, fit: LinearFit, rows: int) -> LinearFit:
        """Return the fit of this regression with HC1 errors.

        Parameters
        ----------
        fit : LinearFit
            Least squares, with classical errors.
        rows : int
            Number of rows.

        Returns
        -------
        LinearFit
            The same coefficients with robust covariances.
        """
        return with_robust_errors(fit, np.array(self.turn), np.array(self.matrix), self.noise_sd, rows)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Moments(Shown):
    """Released second moments of columns: what `counterveil.moments` returns.

    It holds no rows. Any regression among its columns is free, as often as wanted.

    Attributes
    ----------
    treatment, outcome : str
        Columns of the study.
    columns : tuple of str
        All columns, the constant left out.
    groups : tuple of (str, tuple of str)
        Covariates, or treatments, that are several columns, with these.
    basis : tuple of tuple of float
        The constant and every column as a combination of working columns.
    matrix : tuple of tuple of float
        Released means of products of working columns, the constant first.
    noise_sd : tuple of tuple of float
        Standard deviation of the noise of each.
    rows : int
        Number of rows, public.
    level : float
        Default confidence level of intervals, in (0, 1).
    guarantee : Guarantee
        What is protected, how strongly, and where that is proved.
    spent : Budget
        Exact epsilon and delta that the moments cost.
    releases : tuple of (str, str)
        Every number that noise was drawn for: its name, and its sensitivity or scale.
    not_covered : tuple of Caveat or Detail
        What intervals do not cover, the worst first.
    details : dict of str to float or str
        Further public or released numbers.
    robust : tuple of RobustMiddle
        What HC1 errors of some regressions need.

    Examples
    --------
    >>> import counterveil as cv
    >>> trial = cv.datasets.lalonde()
    >>> ask = {"protects": "outcome", "epsilon": 4, "delta": 1e-6, "noise": cv.SeededNoise(1)}
    >>> moments = cv.moments(trial.frame, trial.study, **ask)
    >>> fit = moments.regress("re78 ~ train + age")
    >>> moments.columns[-2:], moments.rows
    (('train', 're78'), 445)
    >>> fit.method
    'OLS'
    """

    _SAME_AT_SITES: ClassVar[tuple[str, ...]] = ("columns",)
    _COMPUTED_FROM: ClassVar[tuple[str, ...]] = ("basis", "matrix", "noise_sd", "rows", "robust")

    treatment: str
    outcome: str
    columns: tuple[str, ...]
    groups: tuple[tuple[str, tuple[str, ...]], ...]
    basis: Matrix
    matrix: Matrix
    noise_sd: Matrix
    rows: int
    level: float
    guarantee: Guarantee
    spent: Budget
    releases: tuple[tuple[str, str], ...]
    not_covered: tuple[Fact, ...]
    details: dict[str, float | str]
    robust: tuple[RobustMiddle, ...] = ()

    def _site_rows(self) -> int:
        return self.rows

    def _site_figures(self) -> list[SiteFigure]:
        """Return nothing: moments are added up as matrices."""
        return []

    def _site_numbers(self) -> tuple[float, ...]:
        return tuple(value for row in self.matrix for value in row)

    def _site_bounds(self, shape: PublicShape) -> Iterator[Bound]:
        """Yield what a site may say of it: moments of the declared columns, and a matrix for each robust regression."""
        yield Equal("columns", self.columns, shape.names, breach=Breach.QUESTION)
        yield Equal("covariates of several columns", self.groups, shape.columns, breach=Breach.QUESTION)
        for caveat in self.not_covered:
            if isinstance(caveat, ClippedOutliers):
                known = {*caveat.columns} <= {*shape.names}
                yield Equal("whether clipped columns are declared", known, True, breach=Breach.STATEMENT)
        formulas = tuple(middle.formula for middle in self.robust)
        yield Equal("regressions with robust errors", formulas, shape.formulas, breach=Breach.QUESTION)
        for middle in self.robust:
            formula = parse_formula(middle.formula, self.columns, dict(self.groups))
            size = formula.constant + len(formula.regressors) + len(formula.absorbed)
            sides = {len(side) for matrix in (middle.turn, middle.matrix) for side in (matrix, *matrix)}
            yield Equal("sides of a matrix of robust errors", sides, {size}, breach=Breach.KIND)

    def regress(
        self,
        formula: str,
        level: float | None = None,
        *,
        cov_type: Literal["nonrobust", "HC1"] | str = "nonrobust",
    ) -> Regression:
        """Return a regression among the released columns; it spends nothing.

        Parameters
        ----------
        formula : str
            ``"y ~ treat + age"``, with instruments ``"y ~ age + [dose ~ offer]"``. ``a*b`` stands for a, b
            and ``a:b``; ``0`` leaves the constant out; ``C(site)`` is a column of labels, ``I(age**2)`` a
            square and ``log(income)`` a logarithm. Terms after ``|`` are adjusted for and not shown: ``"y ~
            treat | site"``.
        level : float, optional
            Confidence level, in (0, 1). Default: that of the result.
        cov_type : {"nonrobust", "HC1"}, default "nonrobust"
            Errors of equal variance, or robust ones for regressions that ``cv.moments(..., robust=[...])``
            named.

        Returns
        -------
        Regression
            Least squares, or two-stage least squares with instruments.

        Raises
        ------
        CounterveilError
            A level outside (0, 1): CV-P015. A product that was not released: CV-P782. A formula that cannot
            be read: CV-P783. A column that was not released: CV-P784. Labels of no column: CV-P791. Robust
            errors that were not released: CV-P793.

        Examples
        --------
        >>> import counterveil as cv
        >>> trial = cv.datasets.lalonde()
        >>> ask = {"protects": "outcome", "epsilon": 4, "delta": 1e-6, "noise": cv.SeededNoise(1)}
        >>> moments = cv.moments(trial.frame, trial.study, **ask)
        >>> fit = moments.regress("re78 ~ train + age")
        >>> fit.terms
        ('Intercept', 'train', 'age')
        >>> [one.name for one in moments.regress("re78 ~ train | age + educ").coefficients]
        ['train']
        """
        parsed = parse_formula(formula, self.columns, dict(self.groups))
        chosen = self.level if level is None else check_level(level)
        if cov_type == "nonrobust":
            return self._regression(formula, parsed, chosen)
        for middle in self.robust if cov_type == "HC1" else ():
            if parse_formula(middle.formula, self.columns, dict(self.groups)) == parsed:
                return self._regression(formula, parsed, chosen, middle)
        raise refusal(
            "CV-P793",
            known=", ".join(repr(middle.formula) for middle in self.robust) or "none",
            cov_type=cov_type,
        )

    def compliance(
        self,
        received: str,
        *,
        assigned: str | None = None,
        outcome: str | None = None,
        controls: Sequence[str] = (),
        level: float | None = None,
    ) -> Compliance:
        """Return the effects of assignment and, for compliers, of what they received; it spends nothing.

        Parameters
        ----------
        received : str
            Column that says who received the treatment.
        assigned : str, optional
            Column that was randomised. Default: the study's treatment.
        outcome : str, optional
            Column that is explained. Default: the study's outcome.
        controls : sequence of str, default ()
            Columns that are adjusted for.
        level : float, optional
            Confidence level, in (0, 1). Default: that of the result.

        Returns
        -------
        Compliance
            Intention to treat, take-up and complier effect.

        Raises
        ------
        CounterveilError
            A level outside (0, 1): CV-P015. A column that was not released: CV-P784.
        """
        offer, response = assigned or self.treatment, outcome or self.outcome
        terms = "".join(f" + `{name}`" for name in controls)
        on_outcome, on_receipt, two_stage = (
            self.regress(text, level)
            for text in (
                f"`{response}` ~ `{offer}`{terms}",
                f"`{received}` ~ `{offer}`{terms}",
                f"`{response}` ~ 1{terms} + [`{received}` ~ `{offer}`]",
            )
        )
        return Compliance(offer, received, response, on_outcome, on_receipt, two_stage)

    def _regression(
        self, text: str, formula: Formula, level: float, robust: RobustMiddle | None = None
    ) -> Regression:
        moments, basis = self._noisy(), np.array(self.basis)
        places = {name: place for place, name in enumerate((CONSTANT, *self.columns))}

        def rows(names: Sequence[str]) -> Floats:
            return np.asarray(basis[[places[name] for name in names]])

        exogenous = ((CONSTANT,) if formula.constant else ()) + formula.regressors + formula.absorbed
        terms, response = (*exogenous, *formula.endogenous), basis[places[formula.response]]
        first_stage = kept = tested = None
        if not formula.endogenous:
            fit = least_squares(moments, rows(terms), response)
        else:
            fit = two_stage(moments, rows(terms), rows((*formula.instruments, *exogenous)), response)
            if len(formula.endogenous) == 1:
                endogenous, instruments = rows(formula.endogenous)[0], rows(formula.instruments)
                others = rows(exogenous)
                first_stage = joint_statistic(
                    least_squares(moments, np.vstack((instruments, others)), endogenous), len(instruments)
                )
                on_endogenous = np.zeros(len(terms))
                on_endogenous[-1] = 1.0
                centre = (float(fit.coefficients[-1]), fit.error(on_endogenous)[0])
                kept = anderson_rubin(moments, endogenous, instruments, others, response, level, centre)
                tested = joint_p_value(moments, instruments, others, response)
        fit = fit if robust is None else robust.errors_of(fit, self.rows)
        return Regression(
            formula=text,
            method="2SLS" if formula.endogenous else "OLS",
            response=formula.response,
            terms=terms,
            fit=fit,
            rows=self.rows,
            level=level,
            guarantee=self.guarantee,
            spent=self.spent,
            not_covered=self._caveats(robust is not None),
            again=partial(self._regression, text, formula, robust=robust),
            absorbed=(CONSTANT, *formula.absorbed) if formula.absorbed else (),
            cov_type="nonrobust" if robust is None else "HC1",
            endogenous=formula.endogenous,
            instruments=formula.instruments,
            first_stage=first_stage,
            anderson_rubin=kept,
            anderson_rubin_p=tested,
            farthest=self._farthest(formula, fit),
        )

    def _caveats(self, robust: bool) -> tuple[Fact, ...]:
        return tuple(one for one in self.not_covered if not robust or one is not Caveat.UNEQUAL_VARIANCES)

    def _farthest(self, formula: Formula, fit: LinearFit) -> float | None:
        """Return how far a coefficient of the outcome on public columns can be at all, in parts of `LinearFit.unit`."""
        plain = self.guarantee.unit is Unit.OUTCOME and formula.constant and not formula.endogenous
        if not plain or formula.response != self.outcome or not fit.finite:
            return None
        # Half the range: outcomes in [-1, 1] are the last working column, but for a prediction from the others.
        half = abs(self.basis[1 + self.columns.index(self.outcome)][-1])
        return half * sqrt(self.matrix[0][0] * self.rows)

    def _noisy(self) -> NoisyMoments:
        return NoisyMoments(np.array(self.matrix), np.array(self.noise_sd), self.rows)

    def _rows(self) -> list[dict[str, Any]]:
        """Return one dictionary a column: mean and standard deviation as released, and the noise of the mean."""
        return [
            {"column": name} | self._mean(weights)
            for name, weights in zip(self.columns, self.basis[1:], strict=True)
        ]

    def _mean(self, column: tuple[float, ...]) -> dict[str, float]:
        """Return what is known of a column's mean: nothing where noise left no weight to the rows."""
        matrix, noise, weights = np.array(self.matrix), np.array(self.noise_sd), np.array(column)
        with np.errstate(all="ignore"):
            mean = weights @ matrix[0] / matrix[0, 0]
            centred = weights - mean * np.array(self.basis[0])
            error = np.sqrt(centred**2 @ noise[0] ** 2) / matrix[0, 0]
            variance = centred @ matrix @ centred / matrix[0, 0]
        if not (matrix[0, 0] > 0 and np.isfinite([mean, error, variance]).all()):
            return {"mean": 0.0, "sd": inf, "se_noise": inf}
        return {"mean": float(mean), "sd": sqrt(max(float(variance), 0.0)), "se_noise": float(error)}

    def interval(self, level: float | None = None) -> dict[str, Ends]:
        """Return an interval for the mean of every column, by name, privacy noise included.

        Parameters
        ----------
        level : float, optional
            Confidence level, in (0, 1). Default: that of the result.

        Returns
        -------
        dict of str to tuple of (float, float)
            Lower and upper end, in units of the column.

        Raises
        ------
        CounterveilError
            A level outside (0, 1): CV-P015.
        """
        chosen = self.level if level is None else check_level(level)
        return {
            name: self._regression(f"{name} ~ 1", Formula(name, ()), chosen).coefficients[0].interval()
            for name in self.columns
        }

    def stored(self) -> dict[str, Any]:
        """Return what a ledger keeps: numbers as released and public parameters.

        Returns
        -------
        dict
            JSON-ready facts; `from_dict` reads them back.
        """
        return write(self)

    def report_facts(self) -> dict[str, Any]:
        """Return what is printed, as facts.

        Returns
        -------
        dict
            Facts by name; numbers may be infinite.
        """
        warning = self.guarantee.warning
        return ({"guarantee_warning": warning} if warning else {}) | self.stored() | {"means": self._rows()}

    def drawn_facts(self) -> dict[str, Any]:
        """Return the means of the columns as effects of a forest.

        Returns
        -------
        dict
            Facts by name; numbers may be infinite.
        """
        return mean_facts(self._rows(), [*self.interval().values()], self.level)

    @classmethod
    def from_dict(cls, facts: dict[str, Any]) -> Moments:
        """Return the moments that `to_dict` or `stored` wrote.

        Parameters
        ----------
        facts : dict
            Facts of moments of this version of the format.

        Returns
        -------
        Moments
            Equal to those that were written.

        Raises
        ------
        CounterveilError
            Facts of another kind or version, or facts that do not fit together: CV-P661.
        """
        return read(cls, facts)

    def _check(self) -> None:
        """Raise ValueError where the numbers do not fit together."""
        check_level(self.level)
        size = 1 + len(self.columns)
        for matrix in (self.basis, self.matrix, self.noise_sd):
            if len(matrix) != size or any(len(row) != size for row in matrix):
                raise ValueError("a matrix of another size")
            if not all(isfinite(value) for row in matrix for value in row):
                raise ValueError("a number that is none")
        if any(sd < 0 for row in self.noise_sd for sd in row) or self.rows < 1:
            raise ValueError("impossible moments")
        for row_index in range(size):
            if any(
                self.matrix[row_index][column_index] != self.matrix[column_index][row_index]
                for column_index in range(row_index)
            ):
                raise ValueError("moments that are not symmetric")
        if any(name not in self.columns for _, members in self.groups for name in members):
            raise ValueError("a group of other columns")
        for middle in self.robust:
            count = len(middle.matrix)
            if not 0 <= middle.noise_sd < inf or any(
                len(row) != count or not all(map(isfinite, row)) for row in (*middle.turn, *middle.matrix)
            ):
                raise ValueError("an impossible middle of a sandwich")

    def save(self, path: str | Path) -> Path:
        """Write the moments as JSON, with no data in it.

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
    def load(cls, path: str | Path) -> Moments:
        """Return the moments that `save` wrote.

        Parameters
        ----------
        path : str or Path
            File to read.

        Returns
        -------
        Moments
            Equal to those that were saved.

        Raises
        ------
        CounterveilError
            Another file: CV-P787.
        """
        return load(path, cls.from_dict, _no_moments)

    def view(self, full: bool = False) -> View:
        """Return what is shown: columns with means and standard deviations, and the guarantee.

        Parameters
        ----------
        full : bool, default False
            True for everything, False for a summary.

        Returns
        -------
        View
            Title, tables and lines of text, as `summary`, `full` and `to_html` print them.
        """
        return moments_view(self.report_facts(), full)

    def __repr__(self) -> str:
        return f"<Moments: {len(self.columns)} columns, {self.rows:,} rows; {self.spent}>"


def _no_moments(got: str) -> CounterveilError:
    return refusal("CV-P787", got=got)
