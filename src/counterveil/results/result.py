"""The answer about one effect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from counterveil.inference import PooledUncertainty, Uncertainty
from counterveil.privacy import Budget, Estimand, Guarantee, Proof
from counterveil.privacy.caveats import (
    OPENING,
    Fact,
    confounding,
    read_fact,
    read_facts,
    written,
)
from counterveil.report import (
    Repeat,
    View,
    full_view,
    html_page,
    latex_table,
    markdown_page,
    one_line,
    short_view,
    write_up,
)
from counterveil.report.caveats import depends_words, first_words, people_words, target_words
from counterveil.results.effect import (
    Effect,
    Ends,
    Linear,
    StdError,
    around,
    check_level,
    ends_from,
    uncertainty_from_dict,
    uncertainty_to_dict,
)
from counterveil.results.shown import Shown, sentence_of
from counterveil.results.stored import VERSION, check_version, reads_facts

if TYPE_CHECKING:
    from counterveil.results.confounding import Sensitivity
    from counterveil.results.overlap import OverlapSummary


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Released(Shown):
    """The provenance of released numbers: what was asked, what is guaranteed, what it cost, what is not covered.

    `details` are single figures under identifiers, `diagnostics` tables (balance, overlap): where covariates and
    treatments are public they are free, at record level they are not shown. `interval_of` is None where intervals are
    for the effect; otherwise it says what they are for instead, and every rendering starts by saying that there is
    none for the effect. `condition` is None for intervals that stand by themselves; otherwise it says under which
    declared bound an unadjusted one covers, and every rendering starts with it. `assumes` is None where intervals rest
    on no model; otherwise it says what models must be right for them to cover, likewise. `population` is None where
    the effect is that of everybody the estimand names; otherwise it says who was kept, and every rendering starts with
    it too.
    `repeat`, how to ask the same again, and `by_arm`, a Table 1 of public covariates that is empty where they are
    private, are for reports and not stored.
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
    interval_of: Fact | None = None
    condition: Fact | None = None
    assumes: Fact | None = None
    population: Fact | None = None
    repeat: Repeat | None = field(default=None, compare=False)
    by_arm: dict[str, Any] | None = field(default=None, compare=False)

    @property
    def simulated(self) -> bool:
        """Whether the noise came from a seed, so that nothing is guaranteed."""
        return self.guarantee.proof is Proof.NONE

    @property
    def caution(self) -> str | None:
        """What every rendering says first: that no interval is for the effect, or what one depends on."""
        return first_words(
            interval_of=self.interval_of,
            condition=self.condition,
            assumes=self.assumes,
            population=self.population,
        )

    @property
    def may_be_confounded(self) -> bool:
        """Whether there is an interval for the effect which omitted confounders could make wrong."""
        return self.interval_of is None and bool(confounding(self.not_covered))

    # What a kind of result adds.

    @property
    def table(self) -> tuple[Effect, ...]:
        """The effects as objects, in the order of `effects`."""
        raise NotImplementedError

    def _columns(self) -> list[dict[str, Any]]:
        """Return what names each effect in a data frame."""
        raise NotImplementedError

    def _numbers(self) -> dict[str, Any]:
        """Return the numbers as released; everything else follows from them and from the provenance."""
        raise NotImplementedError

    def _shown(self) -> dict[str, Any]:
        """Return what `to_dict` adds for readers, and `from_dict` does not need."""
        raise NotImplementedError

    # What all share.

    def _rows(self) -> list[dict[str, Any]]:
        """Return one dictionary an effect, with the names that R's `broom` uses, dots replaced by underscores."""
        named, source = {"term": self.treatment}, self._source()
        return [
            named | own | effect.row() | source
            for own, effect in zip(self._columns(), self.table, strict=True)
        ]

    def _source(self) -> dict[str, Any]:
        """Return the provenance as columns of a data frame."""
        return {
            "conf_of": target_words(self.interval_of),
            **({} if self.assumes is None else {"assumes": depends_words(self.assumes)}),
            **({} if self.population is None else {"population": people_words(self.population)}),
            "epsilon": float(self.spent.epsilon),
            "delta": float(self.spent.delta),
            "protects": self.guarantee.unit.value,
            "proof": self.guarantee.proof.value,
        }

    def stored(self) -> dict[str, Any]:
        """Return what the ledger keeps: numbers as released and public parameters, from which all else follows."""
        opening = {name: getattr(self, name) for name in OPENING}
        return {
            "version": VERSION,
            "method": self.method,
            "treatment": self.treatment,
            "outcome": self.outcome,
            "level": self.level,
            "guarantee": self.guarantee.to_dict(),
            "spent": self.spent.to_dict(),
            "releases": [list(release) for release in self.releases],
            "not_covered": [written(one) for one in self.not_covered],
            "details": self.details,
            "diagnostics": self.diagnostics,
            **{name: written(fact) for name, fact in opening.items() if fact is not None},
        } | self._numbers()

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready facts; `from_dict` reads them back."""
        first = {"warning": self.guarantee.warning, "caution": self.caution}
        return {name: text for name, text in first.items() if text} | self.stored() | self._shown()

    def report_facts(self) -> dict[str, Any]:
        """Return what reports and pictures show: the facts of `to_dict`, with a row for every effect."""
        return self.to_dict()

    def view(self, full: bool = False) -> View:
        """Return what is shown: a summary, or everything."""
        return (full_view if full else short_view)(self.report_facts())

    def to_latex(self) -> str:
        """Return a booktabs table of the effects with their errors and intervals, and the guarantee."""
        return latex_table(self.report_facts())

    def page_facts(self, overlap: OverlapSummary | None = None) -> dict[str, Any]:
        """Return what a page shows: the facts of `report_facts` and what only reports have; `overlap` was bought."""
        facts = self.report_facts() | {"table_one": self.by_arm}
        if self.repeat is not None:
            facts["repeat"] = self.repeat.to_dict()
        if overlap is not None:
            facts["overlap_summary"] = overlap.to_dict()
        return facts

    def to_html(self, path: str | Path, *, overlap: OverlapSummary | None = None) -> Path:
        """Write a self-contained page: question, answer, picture and protection, all else folded; return its path.

        `overlap` is what `cv.overlap` released of private records; it is shown in place of a Table 1.
        """
        target = Path(path)
        target.write_text(html_page(self.page_facts(overlap)), encoding="utf-8")
        return target

    def _markdown(self) -> str:
        return markdown_page(self.page_facts())

    def write_up(self) -> str:
        """Return a paragraph for a paper, of at most 150 words."""
        return write_up(self.report_facts())

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {one_line(self.report_facts())}>"


def provenance_from_dict(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of `Released` that `stored` wrote."""
    check_version(facts)
    return {
        "method": facts["method"],
        "treatment": facts["treatment"],
        "outcome": facts["outcome"],
        "level": check_level(facts["level"]),
        "guarantee": Guarantee.from_dict(facts["guarantee"]),
        "spent": Budget.from_dict(facts["spent"]),
        "releases": tuple((name, text) for name, text in facts["releases"]),
        "not_covered": read_facts("not_covered", facts["not_covered"]),
        "details": dict(facts["details"]),
        "diagnostics": dict(facts["diagnostics"]),
        **{name: read_fact(name, facts[name]) for name in OPENING if facts.get(name) is not None},
    }


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Comparison(Released):
    """Released effects of a treatment, which an omitted confounder could change."""

    @property
    def _compared(self) -> Sequence[Effect]:
        """The effects that a confounder could change."""
        return self.table

    @property
    def _arm_means(self) -> Sequence[Effect]:
        """For each effect the mean of its arm and of the reference, if they were released."""
        return ()

    @property
    def _risk_ratio(self) -> Effect | None:
        """The ratio of both arms' means with its interval, if it is known."""
        return None

    def sensitivity(
        self,
        *,
        treatment_r2: float | None = None,
        outcome_r2: float | None = None,
        baseline: float | None = None,
        outcome_sd: float | None = None,
        level: float | None = None,
    ) -> Sensitivity:
        """Return how strong an omitted confounder must be to change these effects; free.

        Args:
            treatment_r2, outcome_r2: a confounder to bound the bias of: the shares that it explains of what the
                covariates leave of the treatment, and of what treatment and covariates leave of the outcome.
            baseline: mean outcome of untreated people from public sources; E-values are then those of the ratio.
            outcome_sd: standard deviation of outcomes from public sources; None takes an upper estimate.
            level: of the interval; None takes the result's.
        """
        from counterveil.results.confounding import sensitivity_of

        return sensitivity_of(
            self,
            self._compared,
            treatment_r2=treatment_r2,
            outcome_r2=outcome_r2,
            baseline=baseline,
            outcome_sd=outcome_sd,
            level=level,
            means=self._arm_means,
            ratio=self._risk_ratio,
        )

    def report_facts(self) -> dict[str, Any]:
        """Return what reports and pictures show: the facts of `to_dict`, and what omitted confounders could do."""
        facts = self.to_dict()
        return facts | ({"confounding": self.sensitivity().to_dict()} if self.may_be_confounded else {})


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class OneEffect(Comparison):
    """One released effect, of one table or pooled from several.

    `limits` are what an effect can be at all, plus or minus the width of the outcome's declared range: intervals
    for the effect are cut to them, while `estimate`, `std_error` and `uncertainty` are as released.
    """

    estimate: float
    uncertainty: Uncertainty | PooledUncertainty
    estimand: Estimand
    limits: Ends | None = None

    @property
    def effect(self) -> Effect:
        """The effect with its error; an interval for something else is not cut to what the effect can be."""
        limits = None if self.interval_of is not None else self.limits
        name = self.estimand.value if self.population is None else f"{self.estimand.value}, trimmed"
        return Effect(name, Linear(self.estimate, self.uncertainty, limits), self.level)

    @property
    def table(self) -> tuple[Effect, ...]:
        """The effect, alone."""
        return (self.effect,)

    @property
    def _compared(self) -> Sequence[Effect]:
        return (self.effect,)

    @property
    def std_error(self) -> StdError:
        """Standard error: total, sampling part, privacy-noise part."""
        return self.effect.std_error

    @property
    def p_value(self) -> float:
        """Two-sided p-value of no effect, noise included; below 1 - level when the interval leaves out 0."""
        return self.effect.p_value

    def interval(self, level: float | None = None) -> Ends:
        """Return the two ends of an interval that covers sampling error and privacy noise together.

        One for the effect is cut to what the outcome's declared range allows; one for something else is not.
        """
        return self.effect.interval(level)

    def uncut_interval(self, level: float | None = None) -> Ends:
        """Return the interval before it is cut: as far on either side of the estimate."""
        chosen = self.level if level is None else check_level(level)
        return around(self.estimate, self.uncertainty.half_width(chosen))

    def _columns(self) -> list[dict[str, Any]]:
        return [{"estimand": self.estimand.value}]

    def _shown(self) -> dict[str, Any]:
        shown = {name: value for name, value in self.effect.facts().items() if name != "name"}
        return shown | sentence_of(self.estimand, self.guarantee.whose, self.population)

    def report_facts(self) -> dict[str, Any]:
        """Return what reports and pictures show, with a row for the effect."""
        return super(OneEffect, self).report_facts() | {"effects": [self.effect.facts()]}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Result(OneEffect):
    """A released effect; nothing in it is private any more and nothing it does spends budget.

    `variance_apart` says that the variance was released with noise of its own, sharing none with the estimate, or
    that it is public: only then may it make the weight of a site.
    """

    uncertainty: Uncertainty
    variance_apart: bool = False

    def as_measure(self, measure: str) -> OneEffect:
        """Return the same released numbers as another measure: of a difference "nnt", others are CV-P687; free."""
        from counterveil.results.measure_words import NEEDED
        from counterveil.results.measures import MeasureResult, refuse_of_difference

        refuse_of_difference(self, measure)
        return MeasureResult.of_difference(self) if measure == NEEDED else self

    def _numbers(self) -> dict[str, Any]:
        known = self.uncertainty
        return {
            "estimand": self.estimand.value,
            "estimate": self.estimate,
            "uncertainty": uncertainty_to_dict(known)
            | {"variance_apart": self.variance_apart, "extra": known.extra, "bias": known.bias}
            | {"limits": None if self.limits is None else list(self.limits)},
        }

    @classmethod
    @reads_facts
    def from_dict(cls, facts: dict[str, Any]) -> Result:
        """Return the result written by `to_dict` or `stored`."""
        known = facts["uncertainty"]
        return cls(
            estimate=facts["estimate"],
            estimand=Estimand(facts["estimand"]),
            uncertainty=replace(uncertainty_from_dict(known), extra=known["extra"], bias=known["bias"]),
            variance_apart=known["variance_apart"],
            limits=ends_from(known["limits"]),
            **provenance_from_dict(facts),
        )
