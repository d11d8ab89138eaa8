"""The answer about several arms: a mean for each, and an effect for each but the reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import isfinite
from typing import Any

import numpy as np

from counterveil.data import Study
from counterveil.data.labels import Label
from counterveil.errors import refusal
from counterveil.inference import NoiseDistribution, NoiseSum, Uncertainty
from counterveil.inference.convolution import weighted_sum
from counterveil.numerics.arrays import Ends, Floats
from counterveil.privacy import Estimand
from counterveil.results.effect import Effect, Linear, solved
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

    def pairwise(self) -> tuple[Effect, ...]:
        """Return every arm's effect against each one before it, for free; `several` counts all pairs."""
        pairs = list(combinations(self.means, 2))
        return tuple(contrast(later, earlier, len(pairs)) for earlier, later in pairs)

    def slope(self, doses: Mapping[Any, float] | None = None) -> Effect:
        """Return the change of the mean outcome by one more unit of a dose: least squares over the arms; free.

        `doses` are the doses of the arms by label; labels that are numbers are their own. Arms count by their rows.
        """
        sizes, x = np.array([mean.size for mean in self.means]), self._doses(doses)
        x = x - sizes @ x / sizes.sum()
        return weighted(self.means, sizes * x / float(sizes @ x**2), "slope")

    def dose_response(self, doses: Mapping[Any, float] | None = None) -> list[dict[str, float]]:
        """Return the mean outcome at every dose, as for `slope`: its interval, and a band that holds at all; free."""
        doses_of, found = self._doses(doses), []
        for place in np.argsort(doses_of, kind="stable"):
            mean = replace(self.means[place], several=len(self.means))
            (low, high), (least, most) = mean.interval(), mean.interval(simultaneous=True)
            ends = {"conf_low": low, "conf_high": high, "band_low": least, "band_high": most}
            found.append({"dose": float(doses_of[place]), "estimate": mean.estimate} | ends)
        return found

    def _doses(self, doses: Mapping[Any, float] | None) -> Floats:
        """Return every arm's dose, or raise CV-P797."""
        found: dict[Any, Any] = (
            {mean.name: mean.name for mean in self.means} if doses is None else dict(doses)
        )
        numbers = all(type(value) in (int, float) and isfinite(value) for value in found.values())
        if {*found} != {mean.name for mean in self.means} or not numbers or len({*found.values()}) < 2:
            raise refusal("CV-P797", arms=", ".join(repr(mean.name) for mean in self.means), doses=found)
        return np.array([float(found[mean.name]) for mean in self.means])

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
    found = weighted((mean, reference), np.array([1.0, -1.0]), f"{mean.name} - {reference.name}")
    return replace(found, several=contrasts)


def weighted(means: Sequence[Effect], weights: Floats, name: str) -> Effect:
    """Return a sum of means of different people with public weights: their errors are independent."""
    known = [mean.known for mean in means if isinstance(mean.known, Linear)]
    errors = [one.uncertainty for one in known if isinstance(one.uncertainty, Uncertainty)]
    assert len(errors) == len(means)
    squares, sizes = weights**2, np.abs(weights)
    uncertainty = Uncertainty(
        # Noise is symmetric: its sign does not matter.
        noise=_sum(sizes, [one.noise for one in errors]),
        variance=float(squares @ [one.variance for one in errors]),
        variance_cap=float(squares @ [one.variance_cap for one in errors]),
        variance_noise=_sum(squares, [one.variance_noise for one in errors]),
        extra=float(squares @ [one.extra for one in errors]),
        bias=float(sizes @ [one.bias for one in errors]),
    )
    limits = None
    if all(one.limits is not None for one in known):
        ends = np.sort([weight * np.array(one.limits) for weight, one in zip(weights, known, strict=True)])
        limits = (float(ends[:, 0].sum()), float(ends[:, 1].sum()))
    estimate = float(weights @ [one.estimate for one in known])
    return Effect(name, Linear(estimate, uncertainty, limits), means[0].level)


def _sum(weights: Floats, noises: list[NoiseDistribution | None]) -> NoiseDistribution | None:
    one, *others = noises
    if one is None or None in others:
        return None
    if len(others) == 1 and others[0] is not None and (weights == 1).all():
        return NoiseSum(one, others[0])
    return weighted_sum(weights, noises)


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
