"""A regression from released moments: coefficients, standard errors and intervals that include the privacy noise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import inf, isfinite
from typing import Any

import numpy as np

from counterveil.errors import CounterveilError, refusal
from counterveil.inference.noisy_moments import Fit
from counterveil.numerics.arrays import Floats
from counterveil.privacy import Budget, Guarantee
from counterveil.privacy.caveats import Fact, written
from counterveil.report import View, regression_text, regression_view
from counterveil.report.view import probability, rounded
from counterveil.results.effect import Ends, StdError, check_level, within
from counterveil.results.shown import Shown

CONSTANT = "Intercept"
# First-stage F statistics below this are called weak (Stock, Yogo 2005).
WEAK = 10.0


@dataclass(frozen=True, slots=True, repr=False)
class Coefficient:
    """One coefficient, or a combination of several, with its error and interval; sampling error and noise together."""

    name: str
    estimate: float
    std_error: StdError
    statistic: float
    p_value: float
    interval: Ends

    def __repr__(self) -> str:
        error = self.std_error.total
        ends = ", ".join(rounded(end, error) for end in self.interval)
        return (
            f"<Coefficient: {self.name} {rounded(self.estimate, error)} [{ends}], "
            f"std. error {rounded(error, error)}, p {probability(self.p_value)}>"
        )

    def facts(self) -> dict[str, Any]:
        """Return everything as JSON-ready facts."""
        error = self.std_error
        return {
            "name": self.name,
            "estimate": self.estimate,
            "std_error": {"total": error.total, "sampling": error.sampling, "noise": error.noise},
            "statistic": self.statistic,
            "p_value": self.p_value,
            "interval": {"low": self.interval[0], "high": self.interval[1]},
        }


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Regression(Shown):
    """Coefficients of a regression among released columns; nothing it does spends budget.

    Attributes:
        formula: as it was asked.
        method: "OLS" or "2SLS".
        response: the column that is explained.
        terms: the columns it is regressed on, in the order of the coefficients.
        fit: coefficients and their covariances.
        rows: number of rows, public.
        level: of the intervals.
        endogenous, instruments: of two-stage least squares.
        first_stage: F statistic of the instruments for one endogenous column, noise included.
        anderson_rubin: values of its coefficient that the instruments do not rule out; one interval, two unbounded
            ones, or none.
        anderson_rubin_p: the p-value of no effect that belongs to them.
        farthest: how many standard errors from sampling a coefficient can be at all, but for the constant; None where
            it is not known.
        again: returns the same regression at another level.
        guarantee, spent, not_covered: those of the moments.
    """

    formula: str
    method: str
    response: str
    terms: tuple[str, ...]
    fit: Fit
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

    @property
    def coefficients(self) -> tuple[Coefficient, ...]:
        """The coefficients, in the order of `terms`."""
        return tuple(map(self._one, self.terms))

    def coefficient(self, name: str) -> Coefficient:
        """Return the coefficient of a term, or raise CV-P785."""
        return self._one(self._known(name))

    @property
    def params(self) -> dict[str, float]:
        """The coefficients by name."""
        return {one.name: one.estimate for one in self.coefficients}

    @property
    def identified(self) -> bool:
        """Whether the released moments determine the coefficients; if not, intervals are unbounded."""
        return self.fit.identified

    @property
    def residual_variance(self) -> float:
        """Variance of what the regressors leave of the response."""
        return self.fit.variance

    @property
    def r_squared(self) -> float:
        """Share of the response's variance that the regressors explain; of its mean square without a constant.

        It can be below 0 where noise hides it, and with instruments.
        """
        left = self.fit.variance * self.fit.freedom / max(self.rows, 1)
        return 1 - left / self.fit.total if self.fit.total > 0 else float("nan")

    def interval(self, level: float | None = None) -> dict[str, Ends]:
        """Return an interval for every coefficient, by name."""
        found = self if level is None else self.again(check_level(level))
        return {one.name: one.interval for one in found.coefficients}

    def combination(self, weights: Mapping[str, float], level: float | None = None) -> Coefficient:
        """Return a sum of coefficients, each multiplied by its weight: {"treat": 1, "treat:age": 40}."""
        vector = np.zeros(len(self.terms))
        for name, weight in weights.items():
            vector[self.terms.index(self._known(name))] = weight
        return self._coefficient(_sum(weights), vector, self.level if level is None else check_level(level))

    def partial(self, column: str, at: Mapping[str, float] | None = None) -> Coefficient:
        """Return the effect of one more unit of a column where others have the values `at`; its interactions count.

        With y ~ treat*age, partial("treat", at={"age": 40}) is treat + 40 treat:age.
        """
        values = dict(at or {})
        weights = {self._known(column): 1.0}
        for term in self.terms:
            factors = term.split(":")
            if len(factors) == 2 and column in factors:
                other = factors[1] if factors[0] == column else factors[0]
                if other not in values:
                    raise _no_value(column, other)
                # The square of a column changes twice as fast as its value.
                weights[term] = values[other] * (2.0 if factors[0] == factors[1] else 1.0)
        return self.combination(weights)

    def _known(self, name: str) -> str:
        if name in self.terms:
            return name
        raise refusal("CV-P785", terms=", ".join(map(repr, self.terms)), name=name)

    def _one(self, name: str) -> Coefficient:
        vector = np.zeros(len(self.terms))
        vector[self.terms.index(name)] = 1.0
        found = self._coefficient(name, vector, self.level)
        if not self.anderson_rubin or self.anderson_rubin_p is None or (name,) != self.endogenous:
            return found
        lows, highs = zip(*self.anderson_rubin, strict=True)
        # The t statistic would contradict this interval where instruments are weak.
        return replace(found, p_value=self.anderson_rubin_p, interval=(min(lows), max(highs)))

    def _coefficient(self, name: str, vector: Floats, level: float) -> Coefficient:
        estimate, errors = float(vector @ self.fit.coefficients), StdError(*self.fit.error(vector))
        statistic = estimate / errors.total if errors.total > 0 else (inf if estimate else 0.0)
        half = self.fit.reach(level) * errors.total
        ends = (estimate - half, estimate + half)
        p_value = self.fit.p_value(statistic)
        if self.farthest is not None and isfinite(errors.sampling) and not vector[self._constant].any():
            # Sums of outcomes times public weights: proof in `outcome_moments.proof.md`.
            most = self.farthest * errors.sampling
            estimate, ends = min(max(estimate, -most), most), within(ends, (-most, most))
        return Coefficient(name, estimate, errors, statistic, p_value, ends)

    @property
    def _constant(self) -> list[int]:
        return [place for place, name in enumerate(self.terms) if name == CONSTANT]

    def _rows(self) -> list[dict[str, Any]]:
        """Return one dictionary a coefficient, with the names that R's `broom` uses, dots replaced by underscores."""
        return [
            {
                "term": one.name,
                "response": self.response,
                "method": self.method,
                "estimate": one.estimate,
                "std_error": one.std_error.total,
                "se_sampling": one.std_error.sampling,
                "se_noise": one.std_error.noise,
                "statistic": one.statistic,
                "p_value": one.p_value,
                "conf_low": one.interval[0],
                "conf_high": one.interval[1],
                "level": self.level,
                "epsilon": float(self.spent.epsilon),
                "delta": float(self.spent.delta),
            }
            for one in self.coefficients
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready facts; an end that is unbounded is None."""
        found: dict[str, Any] = finite(self.report_facts())
        return found

    def report_facts(self) -> dict[str, Any]:
        """Return the same with unbounded ends as infinite numbers, for what is printed."""
        warning = self.guarantee.warning
        return ({"warning": warning} if warning else {}) | {
            "formula": self.formula,
            "method": self.method,
            "response": self.response,
            "rows": self.rows,
            "level": self.level,
            "coefficients": [one.facts() for one in self.coefficients],
            "residual_variance": self.residual_variance,
            "r_squared": self.r_squared,
            "centred": self.fit.centred,
            "freedom": self.fit.freedom,
            "identified": self.identified,
            "endogenous": list(self.endogenous),
            "instruments": list(self.instruments),
            "first_stage": self.first_stage,
            "weak": self.first_stage is not None and self.first_stage < WEAK,
            "anderson_rubin": None
            if self.anderson_rubin is None
            else [list(ends) for ends in self.anderson_rubin],
            "guarantee": self.guarantee.to_dict(),
            "spent": self.spent.to_dict(),
            "not_covered": [written(one) for one in self.not_covered],
        }

    def view(self, full: bool = False) -> View:
        """Return what is shown: coefficients, the guarantee and what is not covered."""
        return regression_view(self.report_facts(), full)

    def summary(self) -> str:
        """Return the coefficients as statsmodels prints them, with the part of each error that is noise."""
        return regression_text(self.report_facts())

    def __repr__(self) -> str:
        first = ", ".join(f"{name} {value:.4g}" for name, value in list(self.params.items())[:3])
        return f"<Regression: {self.formula}; {first}; {self.spent}>"


def _sum(weights: Mapping[str, float]) -> str:
    """Return a weighted sum as it is written: "treat + 40 treat:age"."""
    said = ""
    for name, weight in weights.items():
        sign = "-" if weight < 0 else "+"
        term = name if abs(weight) == 1 else f"{abs(weight):g} {name}"
        said += f" {sign} {term}" if said else term if sign == "+" else f"-{term}"
    return said


def finite(facts: Any) -> Any:
    """Return facts with None for every number that is not finite, which JSON cannot hold."""
    if isinstance(facts, dict):
        return {name: finite(value) for name, value in facts.items()}
    if isinstance(facts, list):
        return [finite(value) for value in facts]
    return None if isinstance(facts, float) and not isfinite(facts) else facts


def _no_value(column: str, other: str) -> CounterveilError:
    return refusal("CV-P786", column=column, other=other)
