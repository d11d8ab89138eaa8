"""The answer to a question: an effect, its uncertainty, its promise and its price."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from counterveil.errors import ParameterError
from counterveil.estimators.laws import law_from_dict, law_to_dict
from counterveil.inference import Uncertainty
from counterveil.privacy import Budget, Estimand, Guarantee
from counterveil.report import html_page, latex_table, text_summary


@dataclass(frozen=True, slots=True)
class StdError:
    """Standard error of an estimate; `float(...)` is the total."""

    total: float
    sampling: float
    noise: float

    def __float__(self) -> float:
        return self.total


@dataclass(frozen=True, slots=True)
class Result:
    """A released effect; nothing in it is private any more and nothing it does spends budget.

    `details` are single figures, `diagnostics` tables (balance, overlap): where covariates and
    treatments are public they are free, at record level they are not shown. `interval_of` is None where
    the interval is one for the effect; otherwise it says what the interval is for instead, and every
    rendering starts by saying that there is none for the effect. `condition` is None for intervals that
    stand by themselves; otherwise it says under which declared bound an unadjusted one covers, and every
    rendering starts with it. `variance_apart` says that the variance was released with noise of its own,
    sharing none with the estimate, or that it is public: only then may it make the weight of a site.
    """

    estimate: float
    uncertainty: Uncertainty
    guarantee: Guarantee
    spent: Budget
    estimand: Estimand
    method: str
    treatment: str
    outcome: str
    level: float
    releases: tuple[tuple[str, str], ...]
    not_covered: tuple[str, ...]
    details: dict[str, float | str] = field(default_factory=dict)
    diagnostics: dict[str, Any] = field(default_factory=dict)
    interval_of: str | None = None
    condition: str | None = None
    variance_apart: bool = False

    @property
    def caution(self) -> str | None:
        """What every rendering says first: that no interval is for the effect, or what one depends on."""
        if self.interval_of is not None:
            return f"NO VALID INTERVAL FOR THE EFFECT: the interval is for {self.interval_of}"
        return None if self.condition is None else f"NOT ADJUSTED: {self.condition}"

    @property
    def std_error(self) -> StdError:
        """Standard error: total, sampling part, privacy-noise part."""
        known = self.uncertainty
        return StdError(known.total_sd, known.sampling_sd, known.noise_sd)

    def interval(self, level: float | None = None) -> tuple[float, float]:
        """Return the two ends of an interval that covers sampling error and privacy noise together.

        Where `interval_of` is not None it is not an interval for the effect.
        """
        level = self.level if level is None else check_level(level)
        half = self.uncertainty.half_width(level)
        return self.estimate - half, self.estimate + half

    @property
    def p_value(self) -> float:
        """Two-sided p-value of no effect, noise included; below 1 - level when the interval leaves out 0."""
        return self.uncertainty.p_value(self.estimate, self.level)

    def tidy(self) -> list[dict[str, float | str]]:
        """Return one row with the names that `broom` uses, ready for a data frame."""
        low, high = self.interval()
        error = self.std_error
        return [
            {
                "term": self.treatment,
                "estimand": self.estimand.value,
                "estimate": self.estimate,
                "std.error": error.total,
                "std.error.sampling": error.sampling,
                "std.error.noise": error.noise,
                "statistic": self.estimate / error.total,
                "p.value": self.p_value,
                "conf.low": low,
                "conf.high": high,
                "conf.level": self.level,
                "conf.of": self.interval_of or "the effect",
                "epsilon": float(self.spent.epsilon),
                "delta": float(self.spent.delta),
                "protects": self.guarantee.unit.value,
                "proof": self.guarantee.proof.value,
            }
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready facts; `Result.from_dict` reads them back."""
        low, high = self.interval()
        error = self.std_error
        known = self.uncertainty
        bare = known.naive_half_width(self.level)
        warning = self.guarantee.warning
        facts: dict[str, Any] = {"warning": warning} if warning else {}
        facts |= {"caution": self.caution} if self.caution else {}
        facts |= {"interval_of": self.interval_of} if self.interval_of else {}
        facts |= {"condition": self.condition} if self.condition else {}
        return facts | {
            "method": self.method,
            "estimand": self.estimand.value,
            "treatment": self.treatment,
            "outcome": self.outcome,
            "estimate": self.estimate,
            "std_error": {"total": error.total, "sampling": error.sampling, "noise": error.noise},
            "interval": {"level": self.level, "low": low, "high": high},
            "interval_without_noise": {"low": self.estimate - bare, "high": self.estimate + bare},
            "p_value": self.p_value,
            "guarantee": self.guarantee.to_dict(),
            "spent": self.spent.to_dict(),
            "releases": [list(release) for release in self.releases],
            "not_covered": list(self.not_covered),
            "details": self.details,
            "diagnostics": self.diagnostics,
            "uncertainty": {
                "noise": law_to_dict(known.noise),
                "variance": known.variance,
                "variance_cap": known.variance_cap,
                "variance_noise": law_to_dict(known.variance_noise),
                "variance_apart": self.variance_apart,
                "extra": known.extra,
                "bias": known.bias,
            },
        }

    @classmethod
    def from_dict(cls, facts: dict[str, Any]) -> Result:
        """Return the result written by `to_dict`."""
        known = facts["uncertainty"]
        return cls(
            estimate=facts["estimate"],
            uncertainty=Uncertainty(
                noise=law_from_dict(known["noise"]),
                variance=known["variance"],
                variance_cap=known["variance_cap"],
                variance_noise=law_from_dict(known["variance_noise"]),
                extra=known["extra"],
                bias=known["bias"],
            ),
            guarantee=Guarantee.from_dict(facts["guarantee"]),
            spent=Budget.from_dict(facts["spent"]),
            estimand=Estimand(facts["estimand"]),
            method=facts["method"],
            treatment=facts["treatment"],
            outcome=facts["outcome"],
            level=facts["interval"]["level"],
            releases=tuple((name, text) for name, text in facts["releases"]),
            not_covered=tuple(facts["not_covered"]),
            details=dict(facts["details"]),
            diagnostics=dict(facts["diagnostics"]),
            interval_of=facts.get("interval_of"),
            condition=facts.get("condition"),
            variance_apart=known["variance_apart"],
        )

    def to_latex(self) -> str:
        """Return a booktabs table with the estimate, its errors, its interval and its promise."""
        return latex_table(self.to_dict())

    def to_html(self, path: str | Path) -> Path:
        """Write a self-contained page with the effect, its interval and its promise; return its path."""
        target = Path(path)
        target.write_text(html_page(self.to_dict()), encoding="utf-8")
        return target

    def __str__(self) -> str:
        return text_summary(self.to_dict())


def check_level(level: float) -> float:
    """Return the confidence level if it lies strictly between 0 and 1."""
    if isinstance(level, int | float) and 0 < level < 1:
        return float(level)
    raise ParameterError(
        "CV-P015",
        "a confidence level lies between 0 and 1",
        expected="level such as 0.95",
        got=f"level={level!r}",
        fix="pass 0.95 rather than 95",
    )
