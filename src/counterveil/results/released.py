"""The provenance that every released answer has: what was asked, what is guaranteed, and how it is shown.

Each answer holds the level of its intervals (a probability), the guarantee with the names of its proof pages,
the exact epsilon and delta that it cost, every number that noise was drawn for with its sensitivity or scale,
and what its intervals do not cover. All of these are public or released.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Self, overload

from counterveil.errors import refusal
from counterveil.privacy import Budget, Guarantee, Proof
from counterveil.privacy.caveats import Fact, confounding
from counterveil.report import (
    Repeat,
    View,
    balance_view,
    full_view,
    one_line,
    page,
    report_view,
    short_view,
    write_up,
)
from counterveil.report.balance import balance_rows
from counterveil.report.caveats import depends_words, first_words, people_words, target_words
from counterveil.results.effect import (
    Effect,
    FactsOf,
    check_level,
    effect_rows,
    read,
    write,
)
from counterveil.results.overlap import OverlapSummary
from counterveil.results.shown import Shown, written_to
from counterveil.results.site_bounds import SiteFigure


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ReleasedAnswer(Shown):
    """Released numbers with their provenance: what was asked, guaranteed and spent.

    %FREE% Every rendering starts with `interval_target`, `condition`, `assumptions` and `population` where
    they are not None.

    Attributes
    ----------
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
    """

    # Attributes in which answers of several sites agree, and stored ones that an answer is computed from.
    _SAME_AT_SITES: ClassVar[tuple[str, ...]] = ()
    _COMPUTED_FROM: ClassVar[tuple[str, ...]] = ()

    method: str
    treatment: str
    outcome: str
    level: float
    guarantee: Guarantee
    spent: Budget
    releases: tuple[tuple[str, str], ...]
    not_covered: tuple[Fact, ...]
    details: dict[str, float | str] = field(default_factory=dict)
    diagnostics: dict[str, Any] = field(default_factory=dict)
    interval_target: Fact | None = None
    condition: Fact | None = None
    assumptions: Fact | None = None
    population: Fact | None = None
    repeat: Repeat | None = field(default=None, compare=False)
    by_arm: dict[str, Any] | None = field(default=None, compare=False)

    @property
    def simulated(self) -> bool:
        """Whether the noise came from a seed: then nothing is guaranteed."""
        return self.guarantee.proof is Proof.NONE

    @property
    def warning(self) -> str | None:
        """First line of every rendering, in capitals; None where there is nothing to warn of.

        It begins with "NO VALID INTERVAL FOR THE EFFECT" where intervals are for something else, "NOT
        ADJUSTED" where a declared bound on confounding is what they rest on, "MODELS ASSUMED" where models
        must be right.
        """
        return first_words(
            interval_target=self.interval_target,
            condition=self.condition,
            assumptions=self.assumptions,
            population=self.population,
        )

    @property
    def may_be_confounded(self) -> bool:
        """Whether there is an interval for the effect that omitted confounders could make wrong."""
        return self.interval_target is None and bool(confounding(self.not_covered))

    def provenance(self) -> dict[str, Any]:
        """Return the attributes that an answer made of this one repeats; `repeat` is not among them.

        Returns
        -------
        dict
            Attributes of `ReleasedAnswer` by name.
        """
        return {one.name: getattr(self, one.name) for one in fields(ReleasedAnswer) if one.name != "repeat"}

    # What a kind of result adds.

    @property
    def table(self) -> tuple[Effect, ...]:
        """Effects as objects, in the order of `effects`."""
        raise NotImplementedError

    def _columns(self) -> list[dict[str, Any]]:
        """Return what names each effect in a data frame."""
        raise NotImplementedError

    def _shown(self) -> dict[str, Any]:
        """Return what `to_dict` adds for readers, and `from_dict` does not need."""
        raise NotImplementedError

    def _site_figures(self) -> list[SiteFigure]:
        """Return the numbers that are pooled over sites, by the names that they have at every site."""
        return [SiteFigure(str(effect.name), effect.known) for effect in self.table]

    def _site_numbers(self) -> tuple[float, ...]:
        """Return numbers as the gate released them: two answers that agree in all of them are one release."""
        return tuple(
            number for effect in self.table for number in (effect.estimate, effect.known.sampling_sd)
        )

    def _site_rows(self) -> float | str | None:
        """Return the public number of people behind the answer; None, or a word, where it does not say."""
        return self.details.get("rows")

    # What all share.

    def _rows(self) -> list[dict[str, Any]]:
        """Return one dictionary an effect, with the names that R's `broom` uses, dots replaced by underscores."""
        effects = self.table
        return effect_rows(self.treatment, self._columns(), effects, [self._source()] * len(effects))

    def _source(self) -> dict[str, Any]:
        """Return the provenance as columns of a data frame."""
        return {
            "conf_of": target_words(self.interval_target),
            **({} if self.assumptions is None else {"assumptions": depends_words(self.assumptions)}),
            **({} if self.population is None else {"population": people_words(self.population)}),
            "epsilon": float(self.spent.epsilon),
            "delta": float(self.spent.delta),
            "protects": self.guarantee.unit.value,
            "proof": self.guarantee.proof.value,
        }

    def stored(self) -> dict[str, Any]:
        """Return what a ledger keeps: numbers as released and public parameters, from which all else follows.

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
            What is stored (``version``, ``kind``, the attributes, ``guarantee``, ``spent``, ``releases``,
            ``not_covered``, ``details``, what intervals of every level are computed from), and for readers
            what follows from it: ``guarantee_warning``, ``warning``, ``estimate``, ``std_error``,
            ``interval``, ``interval_without_noise`` (too short, for comparison only), ``p_value``,
            ``effects``. Keys that do not apply are not there.

        Notes
        -----
        ``version`` is that of the format; facts of another one are refused (CV-P661). ``uncertainty`` and
        ``limits`` are enough to compute the interval of any level again. A ledger stores the part that
        `from_dict` needs, and ``counterveil estimate --json`` prints all.

        Examples
        --------
        >>> import counterveil as cv
        >>> trial = cv.datasets.lalonde()
        >>> noise = cv.SeededNoise(1)
        >>> result = cv.ate(trial.frame, trial.study, protects="outcome", epsilon=1, noise=noise)
        >>> facts = result.to_dict()
        >>> facts["kind"], facts["interval"]["level"]
        ('Result', 0.95)
        >>> cv.results.Result.from_dict(facts).interval() == result.interval()
        True
        """
        facts = self._facts()
        return {name: list(one) if isinstance(one, FactsOf) else one for name, one in facts.items()}

    def _facts(self) -> dict[str, Any]:
        """Return the facts of `to_dict`, those of effects solved when they are read."""
        first = {"guarantee_warning": self.guarantee.warning, "warning": self.warning}
        return {name: text for name, text in first.items() if text} | self.stored() | self._shown()

    @classmethod
    def from_dict(cls, facts: dict[str, Any]) -> Self:
        """Return the answer that `to_dict` or `stored` wrote.

        Parameters
        ----------
        facts : dict
            Facts of an answer of this class, of this version of the format.

        Returns
        -------
        ReleasedAnswer
            An answer of the class that is asked, equal to the one that was written.

        Raises
        ------
        CounterveilError
            Facts of another kind or version, or facts that do not fit together: CV-P661.
        """
        return read(cls, facts)

    def _check(self) -> None:
        """Raise ValueError, or CV-P015, where fields that were read do not fit together."""
        check_level(self.level)

    def report_facts(self) -> dict[str, Any]:
        """Return what reports and pictures show: the facts of `to_dict`, with a row for every effect.

        Returns
        -------
        dict
            Facts by name; numbers may be infinite.
        """
        return self._facts()

    def view(self, full: bool = False) -> View:
        """Return what is shown: a summary, or everything.

        Parameters
        ----------
        full : bool, default False
            True for everything, False for a summary.

        Returns
        -------
        View
            Title, tables and lines of text, as `summary`, `full` and `to_html` print them.
        """
        return (full_view if full else short_view)(self.report_facts())

    def page_facts(self, overlap: OverlapSummary | None = None) -> dict[str, Any]:
        """Return what a page shows: the facts of `report_facts` and what only reports have.

        Parameters
        ----------
        overlap : OverlapSummary, optional
            What `counterveil.overlap` released of private records.

        Returns
        -------
        dict
            Facts by name; numbers may be infinite.
        """
        facts = self.report_facts() | {"table_one": self.by_arm}
        if self.repeat is not None:
            facts["repeat"] = self.repeat.to_dict()
        if overlap is not None:
            facts["overlap_summary"] = overlap.to_dict()
        return facts

    def document(self, overlap: OverlapSummary | None = None) -> View:
        """Return what files show: question, answer, picture and protection, and all else in sections.

        Parameters
        ----------
        overlap : OverlapSummary, optional
            What `counterveil.overlap` released of private records; shown instead of a Table 1.

        Returns
        -------
        View
            Title, tables, sections and lines of text.
        """
        return report_view(self.page_facts(overlap))

    @overload
    def to_html(self, path: None = None, *, overlap: OverlapSummary | None = None) -> str: ...
    @overload
    def to_html(self, path: str | Path, *, overlap: OverlapSummary | None = None) -> Path: ...
    def to_html(self, path: str | Path | None = None, *, overlap: OverlapSummary | None = None) -> str | Path:
        """Return a self-contained page, or write it to a file.

        The page holds question, answer, picture and protection; all else is folded.

        Parameters
        ----------
        path : str or Path, optional
            File to write.
        overlap : OverlapSummary, optional
            What `counterveil.overlap` released of private records; shown instead of a Table 1.

        Returns
        -------
        str or Path
            The page, or the path of the file.

        Raises
        ------
        CounterveilError
            The file cannot be written: CV-P021.

        Examples
        --------
        >>> import counterveil as cv
        >>> trial = cv.datasets.lalonde()
        >>> noise = cv.SeededNoise(1)
        >>> result = cv.ate(trial.frame, trial.study, protects="outcome", epsilon=1, noise=noise)
        >>> "re78" in result.to_html()
        True
        """
        return written_to(path, page(self.document(overlap)))

    def balance(self) -> Balance:
        """Return the balance of public covariates before and after adjustment.

        Returns
        -------
        Balance
            Standardised differences and ratios of variances, by covariate.

        Raises
        ------
        CounterveilError
            Covariates or treatment are private, or the method adjusts for nothing: CV-P022.

        Examples
        --------
        >>> import counterveil as cv
        >>> trial = cv.datasets.lalonde()
        >>> noise = cv.SeededNoise(1)
        >>> result = cv.ate(trial.frame, trial.study, protects="outcome", epsilon=1, noise=noise)
        >>> rows = result.balance().tidy()
        >>> len(rows), rows[0]["covariate"]
        (8, 'nodegree')
        >>> abs(rows[0]["difference_after"]) < abs(rows[0]["difference_before"])
        True
        """
        if not self.diagnostics.get("balance"):
            raise refusal("CV-P022", method=self.method, unit=self.guarantee.unit.value)
        return Balance(self)

    def write_up(self) -> str:
        """Return a paragraph for a paper, of at most 150 words.

        Returns
        -------
        str
            What was estimated and how, what came out, what is guaranteed, and what the interval does not
            cover.

        Examples
        --------
        >>> import counterveil as cv
        >>> trial = cv.datasets.lalonde()
        >>> noise = cv.SeededNoise(1)
        >>> result = cv.ate(trial.frame, trial.study, protects="outcome", epsilon=1, noise=noise)
        >>> "privacy noise" in result.write_up()
        True
        """
        return write_up(self.report_facts())

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {one_line(self.report_facts())}>"


@dataclass(frozen=True, slots=True)
class Balance(Shown):
    """How alike the arms of a result are before and after adjustment, by public covariates.

    It spends nothing.

    Attributes
    ----------
    source : ReleasedAnswer
        The result whose arms are compared.

    Notes
    -----
    Differences are (m1 - m0) / s with s the root of the mean of both arms' variances before adjustment; below
    0.1 in size is usually taken for balanced. Ratios are those of the variances, treated over control.

    Examples
    --------
    >>> import counterveil as cv
    >>> trial = cv.datasets.lalonde()
    >>> noise = cv.SeededNoise(1)
    >>> result = cv.ate(trial.frame, trial.study, protects="outcome", epsilon=1, noise=noise)
    >>> balance = result.balance()
    >>> sorted(balance.tidy()[0])[:3]
    ['covariate', 'difference_after', 'difference_before']
    """

    _PLOT: ClassVar[str] = "balance"
    source: ReleasedAnswer

    def _rows(self) -> list[dict[str, Any]]:
        """Return one dictionary a column: standardised differences and ratios of variances, largest first."""
        return balance_rows(self.source.to_dict())

    def view(self, full: bool = False) -> View:
        """Return what is shown: the table, how many differences are large, and the effective sizes.

        Parameters
        ----------
        full : bool, default False
            True for everything, False for a summary.

        Returns
        -------
        View
            Title, tables and lines of text, as `summary`, `full` and `to_html` print them.
        """
        return balance_view(self.source.to_dict(), full)

    def balance(self) -> Balance:
        """Return itself.

        Returns
        -------
        Balance
            The same object.
        """
        return self
