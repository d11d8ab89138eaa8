"""The answer about several arms: a mean for each, and an effect for each but the reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from counterveil.data import Study
from counterveil.data.labels import Label
from counterveil.errors import refusal
from counterveil.inference import NoiseDistribution, NoiseSum, Uncertainty
from counterveil.privacy import Estimand
from counterveil.results.effect import Effect, Ends, Linear, solved
from counterveil.results.result import Comparison


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ArmsResult(Comparison):
    """Released means of several arms, the reference first; nothing it does spends budget.

    A mean is the outcome that everybody would have in that arm; its `name` is the arm's label, `size` its rows.
    """

    means: tuple[Effect, ...]

    @property
    def reference(self) -> Label:
        """The arm that the others are compared with."""
        return self.means[0].name

    @property
    def table(self) -> tuple[Effect, ...]:
        """The effect of every other arm against the reference, in the order of the study."""
        reference, *others = self.means
        return tuple(contrast(mean, reference, len(others)) for mean in others)

    def interval(self, level: float | None = None, simultaneous: bool = False) -> dict[Label, Ends]:
        """Return every effect's interval by arm; with `simultaneous` they hold together (Šidák)."""
        return {
            mean.name: effect.interval(level, simultaneous)
            for mean, effect in zip(self.means[1:], solved(self.table), strict=True)
        }

    @property
    def _arm_means(self) -> Sequence[Effect]:
        return [each for mean in self.means[1:] for each in (mean, self.means[0])]

    def _columns(self) -> list[dict[str, Any]]:
        return [
            {
                "contrast": f"{mean.name} - {self.reference}",
                "arm": mean.name,
                "reference": self.reference,
                "estimand": Estimand.ATE.value,
            }
            for mean in self.means[1:]
        ]

    def _shown(self) -> dict[str, Any]:
        return {
            "estimand": Estimand.ATE.value,
            "reference": self.reference,
            "effects": [
                {"arm": mean.name, "reference": self.reference} | effect.facts()
                for mean, effect in zip(self.means[1:], solved(self.table), strict=True)
            ],
            "arm_means": [mean.facts() for mean in solved(self.means)],
        }

    def _check(self) -> None:
        Comparison._check(self)
        linear = [mean for mean in self.means if isinstance(mean.known, Linear) and mean.level == self.level]
        if len(self.means) < 2 or linear != [*self.means]:
            raise ValueError("several arms have means, which are linear")


def contrast(mean: Effect, reference: Effect, contrasts: int) -> Effect:
    """Return the effect of one arm against the reference, one of `contrasts`.

    Its noise is the sum of two independent ones, that of the arm's mean and that of the reference's.
    """
    own, others = mean.known, reference.known
    assert isinstance(own, Linear)
    assert isinstance(others, Linear)
    one, other = own.uncertainty, others.uncertainty
    assert isinstance(one, Uncertainty)
    assert isinstance(other, Uncertainty)
    uncertainty = Uncertainty(
        noise=_sum(one.noise, other.noise),
        variance=one.variance + other.variance,
        variance_cap=one.variance_cap + other.variance_cap,
        variance_noise=_sum(one.variance_noise, other.variance_noise),
        extra=one.extra + other.extra,
        bias=one.bias + other.bias,
    )
    limits = None
    if own.limits is not None and others.limits is not None:
        limits = own.limits[0] - others.limits[1], own.limits[1] - others.limits[0]
    known = Linear(mean.estimate - reference.estimate, uncertainty, limits)
    return Effect(f"{mean.name} - {reference.name}", known, mean.level, contrasts)


def _sum(one: NoiseDistribution | None, other: NoiseDistribution | None) -> NoiseDistribution | None:
    return None if one is None or other is None else NoiseSum(one, other)


def refuse_several_arms(study: Study, ratio: bool = False) -> None:
    """Raise CV-S063 where a question about two arms is asked of a study of several.

    Questions that do not take a `ratio` as their outcome refuse it with CV-S022.
    """
    refuse_several_outcomes(study)
    if study.per is not None and not ratio:
        raise refusal("CV-S022", per=study.per.column)
    if study.arms is not None:
        raise refusal("CV-S063", arms=study.arms)


def refuse_several_outcomes(study: Study) -> None:
    """Raise CV-S141 where a question about one outcome is asked of a study of several."""
    if study.several is not None:
        raise refusal(
            "CV-S141",
            names=", ".join(map(repr, study.several.names[:3])),
            more=", ..." * (len(study.several.names) > 3),
        )
