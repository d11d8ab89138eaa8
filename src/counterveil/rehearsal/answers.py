"""What a rehearsal found: how long intervals would be, at every epsilon that was tried."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from scipy.special import ndtri

from counterveil.privacy import Budget, Estimand, Unit
from counterveil.rehearsal.assumptions import Assumptions
from counterveil.report.numbers import percent, rounded
from counterveil.report.table import Cells
from counterveil.report.text import text_table, wrapped

# The usual aim of those who plan trials.
_POWER = 0.8


@dataclass(frozen=True, slots=True)
class RehearsedAnswer:
    """The answers to one question, over all made-up studies.

    Attributes:
        budget: what the question would spend.
        method: the estimator, after "auto" has chosen.
        half_width: mean half length of the interval.
        noise: share of the squared standard error that is privacy noise.
        error: root of the mean squared distance between estimate and true effect.
        covered: studies whose interval holds the true effect.
        found: studies whose interval leaves out 0.
        caution: what a result would say first, None where nothing needs saying.
        refusal: code and problem, where the question would be refused; all figures are then None.
    """

    budget: Budget
    method: str | None = None
    half_width: float | None = None
    noise: float | None = None
    error: float | None = None
    covered: int | None = None
    found: int | None = None
    caution: str | None = None
    refusal: str | None = None

    def detectable(self, level: float, power: float = _POWER) -> float | None:
        """Return the smallest effect that the interval would tell from none with this power."""
        if self.half_width is None:
            return None
        return self.half_width * float(1 + ndtri(power) / ndtri((1 + level) / 2))

    def to_dict(self, level: float) -> dict[str, Any]:
        """Return the figures as JSON-ready facts."""
        facts = asdict(self)
        del facts["budget"]
        budget = {"epsilon": float(self.budget.epsilon), "delta": float(self.budget.delta)}
        return budget | facts | {"detectable": self.detectable(level)}


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """Answers on made-up data; no row was read and nothing was spent.

    `without_privacy` is the mean half length of the least-squares interval of the same people.
    """

    treatment: str
    outcome: str
    estimand: Estimand
    protects: Unit
    rows: int
    draws: int
    level: float
    assumed: Assumptions
    without_privacy: float
    answers: tuple[RehearsedAnswer, ...]

    def smallest(self, half_width: float) -> RehearsedAnswer | None:
        """Return the answer of least epsilon whose interval is at most so long on either side; None where none is."""
        enough = [one for one in self.answers if one.half_width is not None and one.half_width <= half_width]
        return min(enough, key=lambda one: one.budget.epsilon, default=None)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready facts."""
        return {
            "treatment": self.treatment,
            "outcome": self.outcome,
            "estimand": self.estimand.value,
            "protects": self.protects.value,
            "rows": self.rows,
            "draws": self.draws,
            "level": self.level,
            "assumed": asdict(self.assumed),
            "without_privacy": self.without_privacy,
            "answers": [one.to_dict(self.level) for one in self.answers],
        }

    def __str__(self) -> str:
        opening = (
            f"Rehearsal of the {self.estimand.value} of '{self.treatment}' on '{self.outcome}', with a private "
            f"{self.protects.value}: {self.draws} made-up studies of {self.rows} people. No data were read, nothing "
            "was spent."
        )
        lines = [*wrapped(opening), *wrapped(self.assumed.words(), "Supposed:    "), ""]
        lines += text_table(self._cells())
        lines += ["", *self._notes()]
        return "\n".join(lines)

    def _cells(self) -> Cells:
        headings = ["epsilon", "method", "estimate +-", "detectable", "noise", "covers", "finds"]
        return Cells(headings, [self._row(one) for one in self.answers])

    def _row(self, one: RehearsedAnswer) -> list[str]:
        epsilon = f"{float(one.budget.epsilon):.3g}"
        if one.half_width is None or one.noise is None:
            return [epsilon, "refused", *["-"] * 5]
        return [
            epsilon,
            str(one.method),
            rounded(one.half_width, one.half_width),
            rounded(one.detectable(self.level) or 0.0, one.half_width),
            f"{100 * one.noise:.0f} %",
            f"{one.covered}/{self.draws}",
            f"{one.found}/{self.draws}",
        ]

    def _notes(self) -> list[str]:
        width = rounded(self.without_privacy, self.without_privacy)
        notes = [
            f"estimate +-: half the {percent(self.level)} interval, on average; without privacy (least squares) it "
            f"would be {width}",
            f"detectable: effect told from none in {percent(_POWER)} of studies",
            "noise: part of the squared standard error that is privacy noise",
            f"covers, finds: studies whose interval holds the true effect ({self.assumed.effect:.4g}), or leaves out 0",
        ]
        said = {one.refusal: one for one in self.answers if one.refusal}
        notes += [f"refused at epsilon {float(one.budget.epsilon):g}: {text}" for text, one in said.items()]
        notes += sorted({one.caution for one in self.answers if one.caution})
        return [line for note in notes for line in wrapped(note)]
