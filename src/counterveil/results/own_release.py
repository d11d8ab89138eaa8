"""The answer to a release of one's own: numbers with noise, and intervals for what they are without it.

    released value = f(rows) + X,    interval: value -+ q,    P(|X| > q) = 1 - level

In units of f, the caller's function. The law of X is public, so that the interval holds f(rows) as often as
it says. It says nothing about a population, as no sampling error is known. The guarantee rests on the bound
that the caller declared (`rows/statistic.proof.md`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt
from typing import Any

from scipy.special import ndtri

from counterveil.inference.estimates import symmetric_interval
from counterveil.inference.uncertainty import Uncertainty
from counterveil.numerics.arrays import Ends
from counterveil.privacy import Budget, Guarantee
from counterveil.report import View
from counterveil.report.own_release import drawn_facts, release_view
from counterveil.results.effect import check_level, read, write
from counterveil.results.shown import Shown


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Release(Shown):
    """Numbers that a session released for a statistic of one's own: what `counterveil.Session.release` returns.

    %FREE% Intervals are about these people and cover the privacy noise; there is no sampling error.

    Attributes
    ----------
    name : str
        What the release is called.
    values : tuple of float
        The released numbers, in units of the statistic; one where it is a single number.
    sd : float
        Standard deviation of the noise of each number.
    uncertainty : Uncertainty or None
        Law of the noise of each number; None for the noise of a list in the l2 ball, of which `sd` is known.
    bound : float
        Declared bound of the statistic: how far one person moves it.
    rows : int
        Number of rows, public.
    level : float
        Default confidence level of intervals, in (0, 1).
    guarantee : Guarantee
        What is protected, how strongly, and on what that rests.
    spent : Budget
        Exact epsilon and delta that this answer cost.
    releases : tuple of (str, str)
        Every number that noise was drawn for: its name, and its sensitivity or scale.

    Examples
    --------
    >>> import counterveil as cv
    >>> data = cv.datasets.simulated_trial(n=2000, effect=0.3)
    >>> def treated(rows):
    ...     return int(rows.treated.sum())
    >>> with cv.Session(data.frame, data.study, budget=cv.Budget(2), noise=cv.SeededNoise(1)) as session:
    ...     answer = session.release("treated", value=treated, bound=1, protects="record", epsilon=1)
    >>> low, high = answer.interval()[0]
    >>> low < answer.value < high
    True
    """

    name: str
    values: tuple[float, ...]
    sd: float
    uncertainty: Uncertainty | None
    bound: float
    rows: int
    level: float
    guarantee: Guarantee
    spent: Budget
    releases: tuple[tuple[str, str], ...]

    @property
    def value(self) -> float:
        """The first released number: the only one of a single statistic."""
        return self.values[0]

    def interval(self, level: float | None = None) -> tuple[Ends, ...]:
        """Return an interval for every number, for what it is without noise.

        Parameters
        ----------
        level : float, optional
            Confidence level, in (0, 1). Default: that of the result.

        Returns
        -------
        tuple of (float, float)
            Lower and upper end, in the order of `values`.

        Raises
        ------
        CounterveilError
            A level outside (0, 1): CV-P015.
        """
        chosen = self.level if level is None else check_level(level)
        half_width = self._half_width(chosen)
        return tuple(symmetric_interval(value, half_width) for value in self.values)

    def _half_width(self, level: float) -> float:
        """Return t with P(|X| > t) = 1 - level for the noise X, or an upper bound of it.

        The law of a coordinate of ball noise lies between that of Laplace noise (one dimension) and a normal one
        (many), of the same standard deviation s: P(|X| > t) = exp(-t sqrt(2) / s) and 2 Phi(-t / s).
        """
        if self.uncertainty is not None:
            return self.uncertainty.half_width(level)
        laplace = -log(1 - level) / sqrt(2)
        normal = -float(ndtri((1 - level) / 2))
        return max(laplace, normal) * self.sd

    def _rows(self) -> list[dict[str, Any]]:
        return [
            {
                "term": self.name,
                "number": number,
                "estimate": value,
                "se_noise": self.sd,
                "conf_low": low,
                "conf_high": high,
                "level": self.level,
                "epsilon": float(self.spent.epsilon),
                "delta": float(self.spent.delta),
                "protects": self.guarantee.unit.value,
                "proof": self.guarantee.proof.value,
            }
            for number, (value, (low, high)) in enumerate(zip(self.values, self.interval(), strict=True), 1)
        ]

    def stored(self) -> dict[str, Any]:
        """Return what a ledger keeps: numbers as released and public parameters.

        Returns
        -------
        dict
            JSON-ready facts; `from_dict` reads them back.
        """
        return write(self)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready facts; `from_dict` reads them back.

        Returns
        -------
        dict
            What is stored, and the intervals at the default level.
        """
        warning = self.guarantee.warning
        first = {"guarantee_warning": warning} if warning else {}
        return first | self.stored() | {"intervals": [list(ends) for ends in self.interval()]}

    def drawn_facts(self) -> dict[str, Any]:
        """Return the numbers as effects of a forest.

        Returns
        -------
        dict
            Facts by name; numbers may be infinite.
        """
        return drawn_facts(self.to_dict())

    @classmethod
    def from_dict(cls, facts: dict[str, Any]) -> Release:
        """Return the release that `to_dict` or `stored` wrote.

        Parameters
        ----------
        facts : dict
            Facts of a release of this version of the format.

        Returns
        -------
        Release
            Equal to the one that was written.

        Raises
        ------
        CounterveilError
            Facts of another kind or version, or facts that do not fit together: CV-P661.
        """
        return read(cls, facts)

    def _check(self) -> None:
        check_level(self.level)
        if not self.values or not self.sd > 0:
            raise ValueError

    def view(self, full: bool = False) -> View:
        """Return what is shown: the numbers with their intervals, and the guarantee.

        Parameters
        ----------
        full : bool, default False
            True for everything, False for a summary.

        Returns
        -------
        View
            Title, tables and lines of text, as `summary`, `full` and `to_html` print them.
        """
        return release_view(self.to_dict(), full)

    def __repr__(self) -> str:
        return (
            f"<Release: {self.name}: {', '.join(f'{value:.4g}' for value in self.values[:3])}; {self.spent}>"
        )
