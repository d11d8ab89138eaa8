"""The provenance that every released answer has: what was asked, what is guaranteed, and how it is shown."""

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
from counterveil.results.effect import Effect, FactsOf, check_level, prefetch_intervals, read, write
from counterveil.results.overlap import OverlapSummary
from counterveil.results.shown import Shown, written_to


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ReleasedAnswer(Shown):
    """The provenance of released numbers: what was asked, what is guaranteed, what it cost, what is not covered.

    `details` are single figures under identifiers, `diagnostics` tables (balance, overlap): where covariates and
    treatments are public they are free, elsewhere they are not shown. Every rendering starts with the
    following four where they are not None. `interval_target` says what intervals are for if not the effect,
    `condition` under which declared bound an unadjusted one covers, `assumptions` what models must be right for
    it to cover, `population` who was kept.
    `repeat`, how to ask the same again, and `by_arm`, a Table 1 of public covariates, are for reports and not
    stored.
    """

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
        """What every rendering says first: that no interval is for the effect, or what one depends on."""
        return first_words(
            interval_target=self.interval_target,
            condition=self.condition,
            assumptions=self.assumptions,
            population=self.population,
        )

    @property
    def may_be_confounded(self) -> bool:
        """Whether there is an interval for the effect which omitted confounders could make wrong."""
        return self.interval_target is None and bool(confounding(self.not_covered))

    def provenance(self) -> dict[str, Any]:
        """Return what an answer that is made of this one says of itself; `repeat` is not of it."""
        return {one.name: getattr(self, one.name) for one in fields(ReleasedAnswer) if one.name != "repeat"}

    # What a kind of result adds.

    @property
    def table(self) -> tuple[Effect, ...]:
        """The effects as objects, in the order of `effects`."""
        raise NotImplementedError

    def _columns(self) -> list[dict[str, Any]]:
        """Return what names each effect in a data frame."""
        raise NotImplementedError

    def _shown(self) -> dict[str, Any]:
        """Return what `to_dict` adds for readers, and `from_dict` does not need."""
        raise NotImplementedError

    # What all share.

    def _rows(self) -> list[dict[str, Any]]:
        """Return one dictionary an effect, with the names that R's `broom` uses, dots replaced by underscores."""
        effects, source = self.table, self._source()
        prefetch_intervals(effects)
        return [
            {"term": self.treatment} | own | effect.row() | source
            for own, effect in zip(self._columns(), effects, strict=True)
        ]

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
        """Return what the ledger keeps: numbers as released and public parameters, from which all else follows."""
        return write(self)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready facts; `from_dict` reads them back."""
        facts = self._facts()
        return {name: list(one) if isinstance(one, FactsOf) else one for name, one in facts.items()}

    def _facts(self) -> dict[str, Any]:
        """Return the facts of `to_dict`, those of effects solved when they are read."""
        first = {"guarantee_warning": self.guarantee.warning, "warning": self.warning}
        return {name: text for name, text in first.items() if text} | self.stored() | self._shown()

    @classmethod
    def from_dict(cls, facts: dict[str, Any]) -> Self:
        """Return what `to_dict` or `stored` wrote; other facts are CV-P661."""
        return read(cls, facts)

    def _check(self) -> None:
        """Raise ValueError, or CV-P015, where fields that were read do not fit together."""
        check_level(self.level)

    def report_facts(self) -> dict[str, Any]:
        """Return what reports and pictures show: the facts of `to_dict`, with a row for every effect."""
        return self._facts()

    def view(self, full: bool = False) -> View:
        """Return what is shown: a summary, or everything."""
        return (full_view if full else short_view)(self.report_facts())

    def page_facts(self, overlap: OverlapSummary | None = None) -> dict[str, Any]:
        """Return what a page shows: the facts of `report_facts` and what only reports have; `overlap` was released."""
        facts = self.report_facts() | {"table_one": self.by_arm}
        if self.repeat is not None:
            facts["repeat"] = self.repeat.to_dict()
        if overlap is not None:
            facts["overlap_summary"] = overlap.to_dict()
        return facts

    def document(self, overlap: OverlapSummary | None = None) -> View:
        """Return what files show: question, answer, picture and protection, and all else in sections."""
        return report_view(self.page_facts(overlap))

    @overload
    def to_html(self, path: None = None, *, overlap: OverlapSummary | None = None) -> str: ...
    @overload
    def to_html(self, path: str | Path, *, overlap: OverlapSummary | None = None) -> Path: ...
    def to_html(self, path: str | Path | None = None, *, overlap: OverlapSummary | None = None) -> str | Path:
        """Return a self-contained page: question, answer, picture and protection, all else folded; or write it.

        `overlap` is what `cv.overlap` released of private records; it is shown instead of a Table 1.
        """
        return written_to(path, page(self.document(overlap)))

    def balance(self) -> Balance:
        """Return the balance of public covariates before and after adjustment; CV-P022 where there is none."""
        if not self.diagnostics.get("balance"):
            raise refusal("CV-P022", method=self.method, unit=self.guarantee.unit.value)
        return Balance(self)

    def write_up(self) -> str:
        """Return a paragraph for a paper, of at most 150 words."""
        return write_up(self.report_facts())

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {one_line(self.report_facts())}>"


@dataclass(frozen=True, slots=True)
class Balance(Shown):
    """How alike the arms of a result are before and after adjustment, by public covariates; free."""

    _PLOT: ClassVar[str] = "balance"
    source: ReleasedAnswer

    def _rows(self) -> list[dict[str, Any]]:
        """Return one dictionary a column: standardised differences and ratios of variances, largest first."""
        return balance_rows(self.source.to_dict())

    def view(self, full: bool = False) -> View:
        """Return what is shown: the table, how many differences are large, and the effective sizes."""
        return balance_view(self.source.to_dict(), full)

    def balance(self) -> Balance:
        """Return itself."""
        return self
