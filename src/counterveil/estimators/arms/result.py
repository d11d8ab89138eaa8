"""The answer about several arms: a mean for each, an effect for each but the reference, one promise."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from counterveil.curator import mechanism_from_dict
from counterveil.data.labels import Label
from counterveil.estimators.result import StdError, check_level
from counterveil.inference import NoiseLaw, SumOfLaws, Uncertainty, adjusted_p, level_of_each
from counterveil.privacy import Budget, Estimand, Guarantee
from counterveil.report import html_page, latex_table, text_summary


@dataclass(frozen=True, slots=True)
class ArmEstimate:
    """A released number about one arm: the mean outcome everybody would have in it."""

    arm: Label
    rows: int
    estimate: float
    uncertainty: Uncertainty
    level: float

    @property
    def std_error(self) -> StdError:
        """Standard error: total, sampling part, privacy-noise part."""
        known = self.uncertainty
        return StdError(known.total_sd, known.sampling_sd, known.noise_sd)

    def interval(self, level: float | None = None) -> tuple[float, float]:
        """Return the two ends of an interval that covers sampling error and privacy noise together."""
        half = self.uncertainty.half_width(self.level if level is None else check_level(level))
        return self.estimate - half, self.estimate + half

    def to_dict(self) -> dict[str, Any]:
        """Return the arm, its number and its interval as JSON-ready facts."""
        low, high = self.interval()
        error = self.std_error
        return {
            "arm": self.arm,
            "rows": self.rows,
            "estimate": self.estimate,
            "std_error": {"total": error.total, "sampling": error.sampling, "noise": error.noise},
            "interval": {"level": self.level, "low": low, "high": high},
        }


@dataclass(frozen=True, slots=True)
class ArmEffect:
    """The effect of one arm against the reference, one of `contrasts` such effects.

    Its noise is the sum of two independent ones, that of the arm's mean and that of the reference's.
    """

    mean: ArmEstimate
    reference: ArmEstimate
    contrasts: int

    @property
    def arm(self) -> Label:
        """The arm's label."""
        return self.mean.arm

    @property
    def estimate(self) -> float:
        """The released effect: mean of the arm minus mean of the reference."""
        return self.mean.estimate - self.reference.estimate

    @property
    def uncertainty(self) -> Uncertainty:
        """What is known about the effect's error."""
        one, other = self.mean.uncertainty, self.reference.uncertainty
        return Uncertainty(
            noise=_sum(one.noise, other.noise),
            variance=one.variance + other.variance,
            variance_cap=one.variance_cap + other.variance_cap,
            variance_noise=_sum(one.variance_noise, other.variance_noise),
        )

    @property
    def std_error(self) -> StdError:
        """Standard error: total, sampling part, privacy-noise part."""
        known = self.uncertainty
        return StdError(known.total_sd, known.sampling_sd, known.noise_sd)

    def interval(self, level: float | None = None, simultaneous: bool = False) -> tuple[float, float]:
        """Return an interval for this effect; with `simultaneous`, all effects' intervals hold together."""
        half = self.uncertainty.half_width(self._level(level, simultaneous))
        return self.estimate - half, self.estimate + half

    @property
    def p_value(self) -> float:
        """Two-sided p-value of no effect, noise included."""
        return self.uncertainty.p_value(self.estimate, self.mean.level)

    @property
    def adjusted_p_value(self) -> float:
        """The p-value for looking at all effects; below 1 - level when the simultaneous interval leaves out 0."""
        alone = self.uncertainty.p_value(self.estimate, self._level(None, True))
        return adjusted_p(alone, self.contrasts)

    def _level(self, level: float | None, simultaneous: bool) -> float:
        chosen = self.mean.level if level is None else check_level(level)
        return level_of_each(chosen, self.contrasts) if simultaneous else chosen

    def to_dict(self) -> dict[str, Any]:
        """Return the effect and both its intervals as JSON-ready facts."""
        error, level = self.std_error, self.mean.level
        (low, high), (least, most) = self.interval(), self.interval(simultaneous=True)
        bare = self.uncertainty.naive_half_width(level)
        return {
            "arm": self.arm,
            "reference": self.reference.arm,
            "estimate": self.estimate,
            "std_error": {"total": error.total, "sampling": error.sampling, "noise": error.noise},
            "interval": {"level": level, "low": low, "high": high},
            "simultaneous_interval": {"level": level, "low": least, "high": most},
            "interval_without_noise": {"low": self.estimate - bare, "high": self.estimate + bare},
            "p_value": self.p_value,
            "adjusted_p_value": self.adjusted_p_value,
        }


@dataclass(frozen=True, slots=True)
class ArmsResult:
    """Released means of several arms, the reference first; nothing it does spends budget."""

    means: tuple[ArmEstimate, ...]
    guarantee: Guarantee
    spent: Budget
    method: str
    treatment: str
    outcome: str
    level: float
    releases: tuple[tuple[str, str], ...]
    not_covered: tuple[str, ...]
    details: dict[str, float | str] = field(default_factory=dict)
    diagnostics: dict[str, Any] = field(default_factory=dict)

    @property
    def reference(self) -> Label:
        """The arm that the others are compared with."""
        return self.means[0].arm

    @property
    def effects(self) -> tuple[ArmEffect, ...]:
        """The effect of every other arm against the reference, in the order of the study."""
        reference, *others = self.means
        return tuple(ArmEffect(mean, reference, len(others)) for mean in others)

    def interval(
        self, level: float | None = None, simultaneous: bool = False
    ) -> dict[Label, tuple[float, float]]:
        """Return every effect's interval by arm; with `simultaneous` they hold together (Šidák)."""
        return {effect.arm: effect.interval(level, simultaneous) for effect in self.effects}

    def tidy(self) -> list[dict[str, float | str]]:
        """Return one row an effect with the names that `broom` uses, ready for a data frame."""
        return [self._row(effect) for effect in self.effects]

    def _row(self, effect: ArmEffect) -> dict[str, float | str]:
        (low, high), (least, most) = effect.interval(), effect.interval(simultaneous=True)
        error = effect.std_error
        return {
            "term": self.treatment,
            "contrast": f"{effect.arm} - {self.reference}",
            "estimand": Estimand.ATE.value,
            "estimate": effect.estimate,
            "std.error": error.total,
            "std.error.sampling": error.sampling,
            "std.error.noise": error.noise,
            "statistic": effect.estimate / error.total,
            "p.value": effect.p_value,
            "adj.p.value": effect.adjusted_p_value,
            "conf.low": low,
            "conf.high": high,
            "conf.low.simultaneous": least,
            "conf.high.simultaneous": most,
            "conf.level": self.level,
            "epsilon": float(self.spent.epsilon),
            "delta": float(self.spent.delta),
            "protects": self.guarantee.unit.value,
            "proof": self.guarantee.proof.value,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready facts; `ArmsResult.from_dict` reads them back."""
        warning = self.guarantee.warning
        facts: dict[str, Any] = {"warning": warning} if warning else {}
        return facts | {
            "method": self.method,
            "estimand": Estimand.ATE.value,
            "treatment": self.treatment,
            "outcome": self.outcome,
            "reference": self.reference,
            "level": self.level,
            "effects": [effect.to_dict() for effect in self.effects],
            "means": [mean.to_dict() | {"uncertainty": _to_dict(mean.uncertainty)} for mean in self.means],
            "guarantee": self.guarantee.to_dict(),
            "spent": self.spent.to_dict(),
            "releases": [list(release) for release in self.releases],
            "not_covered": list(self.not_covered),
            "details": self.details,
            "diagnostics": self.diagnostics,
        }

    @classmethod
    def from_dict(cls, facts: dict[str, Any]) -> ArmsResult:
        """Return the result written by `to_dict`."""
        means = [
            ArmEstimate(
                mean["arm"], mean["rows"], mean["estimate"], _from_dict(mean["uncertainty"]), facts["level"]
            )
            for mean in facts["means"]
        ]
        return cls(
            means=tuple(means),
            guarantee=Guarantee.from_dict(facts["guarantee"]),
            spent=Budget.from_dict(facts["spent"]),
            method=facts["method"],
            treatment=facts["treatment"],
            outcome=facts["outcome"],
            level=facts["level"],
            releases=tuple((name, text) for name, text in facts["releases"]),
            not_covered=tuple(facts["not_covered"]),
            details=dict(facts["details"]),
            diagnostics=dict(facts["diagnostics"]),
        )

    def to_latex(self) -> str:
        """Return a booktabs table with one row an effect, and the promise."""
        return latex_table(self.to_dict())

    def to_html(self, path: str | Path) -> Path:
        """Write a self-contained page with a forest plot of the effects and their promise; return its path."""
        target = Path(path)
        target.write_text(html_page(self.to_dict()), encoding="utf-8")
        return target

    def __str__(self) -> str:
        return text_summary(self.to_dict())


def _sum(one: NoiseLaw | None, other: NoiseLaw | None) -> NoiseLaw | None:
    return None if one is None or other is None else SumOfLaws(one, other)


def _to_dict(known: Uncertainty) -> dict[str, Any]:
    laws: dict[str, Any] = {"noise": known.noise, "variance_noise": known.variance_noise}
    return {
        "variance": known.variance,
        "variance_cap": known.variance_cap,
    } | {name: None if law is None else law.to_dict() for name, law in laws.items()}


def _from_dict(facts: dict[str, Any]) -> Uncertainty:
    laws: dict[str, Any] = {
        name: None if facts[name] is None else mechanism_from_dict(facts[name])
        for name in ("noise", "variance_noise")
    }
    return Uncertainty(
        laws["noise"], facts["variance"], facts["variance_cap"], variance_noise=laws["variance_noise"]
    )
