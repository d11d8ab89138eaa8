"""Released second moments, from which regressions are computed without further cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import inf, isfinite, sqrt
from pathlib import Path
from typing import Any

import numpy as np

from counterveil.errors import CounterveilError, refusal
from counterveil.inference.noisy_moments import Fit, NoisyMoments, least_squares, two_stage
from counterveil.inference.weak_instruments import anderson_rubin, joint_p_value, joint_statistic
from counterveil.numerics.arrays import Floats
from counterveil.privacy import Budget, Guarantee, Unit
from counterveil.privacy.caveats import Fact, read_facts, written
from counterveil.report import View, moments_view
from counterveil.results.compliance import Compliance
from counterveil.results.effect import Ends, check_level
from counterveil.results.formula import Formula, parse_formula
from counterveil.results.regression import CONSTANT, Regression, finite
from counterveil.results.shown import Shown
from counterveil.results.stored import VERSION, check_version, load, reads_facts, save

Matrix = tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Moments(Shown):
    """Released second moments of columns; nothing it does spends budget, and it holds no rows.

    Attributes:
        treatment, outcome: names of these columns.
        columns: names of all columns, the constant left out.
        groups: covariates, or treatments, that are several columns, with these.
        basis: the constant and every column as a combination of working columns.
        matrix: released means of products of working columns, the constant first.
        noise_sd: standard deviation of the noise of each.
        rows: number of rows, public.
        level: of the intervals.
        guarantee, spent, releases, not_covered, details: as in every result.
    """

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

    def regress(self, formula: str, level: float | None = None) -> Regression:
        """Return a regression among the released columns: "y ~ treat + age", or "y ~ age + [dose ~ offer]".

        Least squares, or two-stage least squares with instruments in brackets as in linearmodels. Free.
        """
        found = parse_formula(formula, self.columns, dict(self.groups))
        return self._regression(formula, found, self.level if level is None else check_level(level))

    def compliance(
        self,
        received: str,
        *,
        assigned: str | None = None,
        outcome: str | None = None,
        controls: Sequence[str] = (),
        level: float | None = None,
    ) -> Compliance:
        """Return the effects of assignment and, for those who comply with it, of what they received. Free.

        Args:
            received: the column that says who received the treatment.
            assigned: the column that was randomised; the study's treatment if omitted.
            outcome: the column explained; the study's outcome if omitted.
            controls: columns that are adjusted for.
            level: of the intervals.
        """
        offer, response = assigned or self.treatment, outcome or self.outcome
        terms = "".join(f" + `{name}`" for name in controls)
        one, two, three = (
            self.regress(text, level)
            for text in (
                f"`{response}` ~ `{offer}`{terms}",
                f"`{received}` ~ `{offer}`{terms}",
                f"`{response}` ~ 1{terms} + [`{received}` ~ `{offer}`]",
            )
        )
        return Compliance(offer, received, response, one, two, three)

    def _regression(self, text: str, formula: Formula, level: float) -> Regression:
        moments, basis = self._noisy(), np.array(self.basis)
        places = {name: place for place, name in enumerate((CONSTANT, *self.columns))}

        def rows(names: Sequence[str]) -> Floats:
            return np.asarray(basis[[places[name] for name in names]])

        exogenous = ((CONSTANT,) if formula.constant else ()) + formula.regressors
        terms, response = (*exogenous, *formula.endogenous), basis[places[formula.response]]
        stage = kept = tested = None
        if not formula.endogenous:
            fit = least_squares(moments, rows(terms), response)
        else:
            fit = two_stage(moments, rows(terms), rows((*formula.instruments, *exogenous)), response)
            if len(formula.endogenous) == 1:
                own, instruments, others = (
                    rows(formula.endogenous)[0],
                    rows(formula.instruments),
                    rows(exogenous),
                )
                stage = joint_statistic(
                    least_squares(moments, np.vstack((instruments, others)), own), len(instruments)
                )
                last = np.zeros(len(terms))
                last[-1] = 1.0
                centre = (float(fit.coefficients[-1]), fit.error(last)[0])
                kept = anderson_rubin(moments, own, instruments, others, response, level, centre)
                tested = joint_p_value(moments, instruments, others, response)
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
            not_covered=self.not_covered,
            again=partial(self._regression, text, formula),
            endogenous=formula.endogenous,
            instruments=formula.instruments,
            first_stage=stage,
            anderson_rubin=kept,
            anderson_rubin_p=tested,
            farthest=self._farthest(formula, fit),
        )

    def _farthest(self, formula: Formula, fit: Fit) -> float | None:
        """Return how many sampling errors a coefficient of the outcome on public columns can be at all."""
        plain = self.guarantee.unit is Unit.OUTCOME and formula.constant and not formula.endogenous
        if not plain or formula.response != self.outcome or fit.variance <= 0:
            return None
        # Half the range: outcomes in [-1, 1] are the last working column, but for a prediction from the others.
        half = abs(self.basis[1 + self.columns.index(self.outcome)][-1])
        return half * sqrt(self.matrix[0][0] * self.rows / fit.variance)

    def _noisy(self) -> NoisyMoments:
        return NoisyMoments(np.array(self.matrix), np.array(self.noise_sd), self.rows)

    def _rows(self) -> list[dict[str, Any]]:
        """Return one dictionary a column: mean and standard deviation as released, and the noise of the mean."""
        return [
            {"column": name} | self._mean(own) for name, own in zip(self.columns, self.basis[1:], strict=True)
        ]

    def _mean(self, column: tuple[float, ...]) -> dict[str, float]:
        """Return what is known of a column's mean: nothing where noise left no weight to the rows."""
        matrix, noise, own = np.array(self.matrix), np.array(self.noise_sd), np.array(column)
        with np.errstate(all="ignore"):
            mean = own @ matrix[0] / matrix[0, 0]
            centred = own - mean * np.array(self.basis[0])
            error = np.sqrt(centred**2 @ noise[0] ** 2) / matrix[0, 0]
            variance = centred @ matrix @ centred / matrix[0, 0]
        if not (matrix[0, 0] > 0 and np.isfinite([mean, error, variance]).all()):
            return {"mean": 0.0, "sd": inf, "se_noise": inf}
        return {"mean": float(mean), "sd": sqrt(max(float(variance), 0.0)), "se_noise": float(error)}

    def interval(self, level: float | None = None) -> dict[str, Ends]:
        """Return an interval for the mean of every column, by name; sampling error and noise together."""
        chosen = self.level if level is None else check_level(level)
        return {
            name: self._regression(f"{name} ~ 1", Formula(name, ()), chosen).coefficients[0].interval
            for name in self.columns
        }

    def stored(self) -> dict[str, Any]:
        """Return what the ledger keeps: numbers as released and public parameters."""
        return {
            "version": VERSION,
            "moments_of": list(self.columns),
            "treatment": self.treatment,
            "outcome": self.outcome,
            "groups": [[name, list(members)] for name, members in self.groups],
            "basis": [list(row) for row in self.basis],
            "matrix": [list(row) for row in self.matrix],
            "noise_sd": [list(row) for row in self.noise_sd],
            "rows": self.rows,
            "level": self.level,
            "guarantee": self.guarantee.to_dict(),
            "spent": self.spent.to_dict(),
            "releases": [list(release) for release in self.releases],
            "not_covered": [written(one) for one in self.not_covered],
            "details": self.details,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready facts, None for what is unbounded; `from_dict` reads them back."""
        found: dict[str, Any] = finite(self.report_facts())
        return found

    def report_facts(self) -> dict[str, Any]:
        """Return the same with infinite numbers, for what is printed."""
        warning = self.guarantee.warning
        return ({"warning": warning} if warning else {}) | self.stored() | {"means": self._rows()}

    @classmethod
    @reads_facts
    def from_dict(cls, facts: dict[str, Any]) -> Moments:
        """Return the moments written by `to_dict` or `stored`."""
        check_version(facts)
        found = cls(
            treatment=facts["treatment"],
            outcome=facts["outcome"],
            columns=tuple(facts["moments_of"]),
            groups=tuple((name, tuple(members)) for name, members in facts["groups"]),
            basis=_matrix(facts["basis"]),
            matrix=_matrix(facts["matrix"]),
            noise_sd=_matrix(facts["noise_sd"]),
            rows=facts["rows"],
            level=check_level(facts["level"]),
            guarantee=Guarantee.from_dict(facts["guarantee"]),
            spent=Budget.from_dict(facts["spent"]),
            releases=tuple((name, text) for name, text in facts["releases"]),
            not_covered=read_facts("not_covered", facts["not_covered"]),
            details=dict(facts["details"]),
        )
        found._check()
        return found

    def _check(self) -> None:
        """Raise ValueError where the numbers do not fit together."""
        size = 1 + len(self.columns)
        for matrix in (self.basis, self.matrix, self.noise_sd):
            if len(matrix) != size or any(len(row) != size for row in matrix):
                raise ValueError("a matrix of another size")
            if not all(isfinite(value) for row in matrix for value in row):
                raise ValueError("a number that is none")
        if any(sd < 0 for row in self.noise_sd for sd in row) or self.rows < 1:
            raise ValueError("impossible moments")
        for place in range(size):
            if any(self.matrix[place][other] != self.matrix[other][place] for other in range(place)):
                raise ValueError("moments that are not symmetric")
        if any(name not in self.columns for _, members in self.groups for name in members):
            raise ValueError("a group of other columns")

    def save(self, path: str | Path) -> Path:
        """Write the moments as JSON, with no data in it; return the path."""
        return save(self.to_dict(), path)

    @classmethod
    def load(cls, path: str | Path) -> Moments:
        """Return the moments that `save` wrote; another file is refused with CV-P787."""
        return load(path, cls.from_dict, _no_moments)

    def view(self, full: bool = False) -> View:
        """Return what is shown: columns with means and standard deviations, the guarantee, what is not covered."""
        return moments_view(self.report_facts(), full)

    def __repr__(self) -> str:
        return f"<Moments: {len(self.columns)} columns, {self.rows:,} rows; {self.spent}>"


def _matrix(rows: Any) -> Matrix:
    return tuple(tuple(float(value) for value in row) for row in rows)


def _no_moments(got: str) -> CounterveilError:
    return refusal("CV-P787", got=got)
