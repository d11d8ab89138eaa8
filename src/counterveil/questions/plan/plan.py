"""What a plan found: how long intervals would be, at every epsilon and size that was tried."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import inf, isfinite
from pathlib import Path
from typing import Any

from counterveil.inference.measures import ODDS, RATIO
from counterveil.privacy import Estimand, Unit
from counterveil.questions.plan.assumptions import Assumptions
from counterveil.questions.plan.trials import POWER, PlannedAnswer, finite
from counterveil.report import Cells, View, latex, page, plan_plot
from counterveil.report.page import named_lines
from counterveil.report.view import percent, rounded
from counterveil.results.measure_words import DIFFERENCE, NEEDED
from counterveil.results.shown import Shown
from counterveil.results.stored import reads_facts

_TOLD = 6  # epsilons in a paragraph
_METHOD = 22  # letters of a method in the table
# Values of no effect that are not zero.
_NULLS = {RATIO: "a ratio of 1", ODDS: "an odds ratio of 1"}


@dataclass(frozen=True, slots=True, repr=False)
class Plan(Shown):
    """Answers on simulated data; no row was read and nothing was spent.

    `rows` is the first size, or that of the last look. `without_privacy` is the half-width that so many people would
    give: by least squares, or where that does not answer the question (`by_least_squares` is False) by the question
    itself with hardly any noise. Where a half-width is `wanted`, `least_epsilon` is the least epsilon for it with
    `rows` people, and `least_rows` the least number of people for each epsilon; None where none that was tried is
    enough. With `skewed`, half-widths are medians over studies and not means.
    """

    question: str
    treatment: str
    outcome: str
    estimand: Estimand
    protects: Unit
    rows: int
    draws: int
    level: float
    assumed: Assumptions
    without_privacy: float
    answers: tuple[PlannedAnswer, ...]
    wanted: float | None = None
    least_epsilon: float | None = None
    least_rows: tuple[tuple[float, int | None], ...] = ()
    measure: str = DIFFERENCE
    by_least_squares: bool = True
    skewed: bool = False

    def smallest(self, half_width: float) -> PlannedAnswer | None:
        """Return the answer of least epsilon whose interval is at most so long on either side; None where none is."""
        enough = [one for one in self.answers if one.half_width is not None and one.half_width <= half_width]
        return min(enough, key=lambda one: one.budget.epsilon, default=None)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready facts."""
        return {
            "question": self.question,
            "treatment": self.treatment,
            "outcome": self.outcome,
            "estimand": self.estimand.value,
            "protects": self.protects.value,
            "rows": self.rows,
            "draws": self.draws,
            "level": self.level,
            "assumed": asdict(self.assumed),
            "without_privacy": finite(self.without_privacy),
            "answers": [self._facts(one) for one in self.answers],
            "wanted": self.wanted,
            "least_epsilon": self.least_epsilon,
            "least_rows": [list(pair) for pair in self.least_rows],
            "measure": self.measure,
            "by_least_squares": self.by_least_squares,
            "skewed": self.skewed,
        }

    def _facts(self, one: PlannedAnswer) -> dict[str, Any]:
        return one.to_dict(self.level) | {"detectable": self._detectable(one)}

    def _detectable(self, one: PlannedAnswer) -> float | None:
        # An interval of a ratio is not as long on either side, nor everywhere alike.
        return one.detectable(self.level) if self.measure == DIFFERENCE else None

    @classmethod
    @reads_facts
    def from_dict(cls, facts: dict[str, Any]) -> Plan:
        """Return the plan written by `to_dict`."""
        own = {
            name: facts[name]
            for name in ("question", "treatment", "outcome", "rows", "draws", "level", "wanted")
        }
        own |= {name: facts[name] for name in ("least_epsilon", "measure", "by_least_squares", "skewed")}
        free = facts["without_privacy"]
        return cls(
            estimand=Estimand(facts["estimand"]),
            protects=Unit(facts["protects"]),
            assumed=Assumptions(**facts["assumed"]),
            answers=tuple(PlannedAnswer.from_dict(one) for one in facts["answers"]),
            least_rows=tuple((epsilon, rows) for epsilon, rows in facts["least_rows"]),
            without_privacy=inf if free is None else free,
            **own,
        )

    def _rows(self) -> list[dict[str, Any]]:
        """Return one dictionary for each size and epsilon: what intervals would be over all simulated studies."""
        return [
            {
                "term": self.treatment,
                "estimand": self.estimand.value,
                "level": self._level(one),
                "rows": one.rows,
                "epsilon": float(one.budget.epsilon),
                "delta": float(one.budget.delta),
                "method": one.method,
                "half_width": one.half_width,
                "detectable": self._detectable(one),
                "noise_share": one.noise,
                "rmse": one.error,
                "coverage": None if one.covered is None else one.covered / self.draws,
                "power": None if one.found is None else one.found / self.draws,
                "unbounded": None if one.half_width is None else one.unbounded / self.draws,
                "refusal": one.refusal,
            }
            for one in self.answers
        ]

    def view(self, full: bool = False) -> View:
        """Return what is shown: the table and what was assumed; in full, what the columns mean as well."""
        lead = (
            f"{self.draws} simulated studies of {self._people()} people, with a private {self.protects.value}; no "
            "private data were read, nothing was spent"
        )
        items = [
            ("Assumed", self.assumed.words()),
            ("No privacy", self._plain()),
            *self._each(),
            *self._unbounded(),
            *self._least(),
        ]
        said = {one.refusal: one for one in self.answers if one.refusal}
        items += [
            ("Refused", f"at epsilon {float(one.budget.epsilon):g}: {text}") for text, one in said.items()
        ]
        items += [("Caution", text) for text in sorted({one.caution for one in self.answers if one.caution})]
        items += self._legend() if full else [("More", "plan.full() explains the columns")]
        return View([], self._title(), lead, [self._cells()], items)

    def write_up(self) -> str:
        """Return a paragraph for a protocol: what was assumed and which intervals are to be expected."""
        shown = [
            f"{self._where(one)}: "
            + (f"refused ({one.refusal})" if one.half_width is None else f"half-width {self._row(one)[2]}")
            for one in self.answers[:_TOLD]
        ]
        return (
            f"{self._title()}: {self.draws} simulated studies of {self._people()} people, with a private "
            f"{self.protects.value}. Assumed: {self.assumed.words()}. Half-width {self._of_interval()}, "
            f"{self._over()}: {'; '.join(shown)}. {self._plain()[:1].upper()}{self._plain()[1:]}. No private "
            "data were read and nothing was spent."
        )

    def to_latex(self) -> str:
        """Return the table for a protocol; it needs only the booktabs package."""
        return latex(self._cells(), f"Assumed: {self.assumed.words()}.")

    def to_html(self, path: str | Path) -> Path:
        """Write the plan as a self-contained page; return its path."""
        view, answers = self.view(full=True), [self._facts(one) for one in self.answers]
        target = Path(path)
        drawn = f"{plan_plot(answers, self.without_privacy, self.beside)}{named_lines(view.items)}"
        target.write_text(page(view, drawn), encoding="utf-8")
        return target

    @property
    def beside(self) -> str:
        """What `without_privacy` is the half-width of, and of how many people."""
        what = "least squares without privacy" if self.by_least_squares else "the question without privacy"
        return f"{what}, {self.rows:,} people"

    def __repr__(self) -> str:
        rows = map(self._row, self.answers[:2])
        found = [f"epsilon {row[0]}: {row[1]}" + f" +- {row[2]}" * (row[2] != "-") for row in rows]
        left = [f"{len(self.answers) - 2} more"] * (len(self.answers) > 2)
        return f"<{type(self).__name__}: {'; '.join([self._title(), *found, *left])}>"

    def _title(self) -> str:
        what = {
            "ate": f"the {self.estimand.value}",
            "arms": "the effects of several arms",
            "groups": "effects by group",
        }
        what |= {"cate": "the effect as a function", "policy_value": "the value of a policy"}
        what |= {
            "survival": "the survival effect",
            "outcomes": "the effects",
            "event_study": "effects by period",
        }
        what |= {"moments": "the coefficient", "compliance": "the complier effect"}
        what |= {"interim": f"looks at the {self.estimand.value}"}
        measured = "" if self.measure == DIFFERENCE else f" ({self.measure.replace('_', ' ')})"
        return f"Plan for {what[self.question]}{measured} of {self.treatment} on {self.outcome}"

    def _people(self) -> str:
        return " or ".join(f"{rows:,}" for rows in dict.fromkeys(one.rows for one in self.answers))

    def _least(self) -> list[tuple[str, str]]:
        """Return what is needed for the wanted half-width, in words."""
        if self.wanted is None:
            return []
        enough = "no epsilon is enough" if self.least_epsilon is None else f"epsilon {self.least_epsilon:g}"
        sizes = "; ".join(
            f"epsilon {epsilon:g}: {'more than were tried' if rows is None else f'{rows:,} people'}"
            for epsilon, rows in self.least_rows
        )
        return [
            ("Needed", f"for a half-width of {self.wanted:g}: {enough} with {self.rows:,} people; {sizes}")
        ]

    def _each(self) -> list[tuple[str, str]]:
        """Return the half-widths of effects in units of their own, in words."""
        halves = {
            self._where(one): ", ".join(f"{name} {_said(half)}" for name, half in one.each.items())
            for one in self.answers
            if one.each
        }
        return [("Each", "; ".join(f"{where}: {said}" for where, said in halves.items()))] if halves else []

    def _unbounded(self) -> list[tuple[str, str]]:
        """Return how often intervals have no end, in words."""
        found = [f"{self._where(one)}: {one.unbounded:.3g}" for one in self.answers if one.unbounded]
        return (
            [("No end", f"intervals of {self.draws} studies without an end; {'; '.join(found)}")]
            if found
            else []
        )

    def _where(self, one: PlannedAnswer) -> str:
        """Return epsilon, and what else tells an answer from the others: number of people and level."""
        several = len({each.rows for each in self.answers}) > 1
        sized = f", {one.rows:,} people" if several else ""
        levelled = "" if one.level is None else f", {_percent(one.level)} interval"
        return f"epsilon {float(one.budget.epsilon):.3g}{sized}{levelled}"

    def _level(self, one: PlannedAnswer) -> float:
        return self.level if one.level is None else one.level

    def _of_interval(self) -> str:
        return (
            f"of the {percent(self.level)} interval"
            if not self._looks
            else "of the interval at each look's level"
        )

    @property
    def _looks(self) -> bool:
        """Whether intervals have levels of their own."""
        return any(one.level is not None for one in self.answers)

    def _plain(self) -> str:
        if self.without_privacy == inf:
            return "without privacy most intervals would have no end"
        half = rounded(self.without_privacy, self.without_privacy)
        if not self.by_least_squares:
            return f"without privacy the half-width would be {half}"
        everyone = " with everyone followed to the horizon" if self.question == "survival" else ""
        return f"least squares for the average effect{everyone} would have a half-width of {half}"

    def _cells(self) -> Cells:
        # Which ratio would be detected depends on the mean of the controls: power is that of the effect assumed.
        detectable = ["detectable"] * (self.measure == DIFFERENCE)
        headings = ["epsilon", "method", "half-width", *detectable, "noise", "coverage", "power"]
        rows = [self._row(one) for one in self.answers]
        if self._looks:
            labels = [f"{one.rows:,} at {_percent(self._level(one))}" for one in self.answers]
        elif len({one.rows for one in self.answers}) > 1:
            labels = [f"{one.rows:,}" for one in self.answers]
        else:
            return Cells(headings, rows)
        headings = ["people at level" if self._looks else "people", *headings]
        return Cells(headings, [[label, *row] for label, row in zip(labels, rows, strict=True)])

    def _row(self, one: PlannedAnswer) -> list[str]:
        epsilon = f"{float(one.budget.epsilon):.3g}"
        if one.half_width is None or one.noise is None:
            return [epsilon, "refused", *["-"] * (5 if self.measure == DIFFERENCE else 4)]
        half, detectable = one.half_width, self._detectable(one)
        return [
            epsilon,
            _short(str(one.method)),
            _said(half),
            *(["-" if detectable is None else rounded(detectable, half)] * (self.measure == DIFFERENCE)),
            f"{100 * one.noise:.0f} %",
            "-" if one.covered is None else f"{one.covered:.3g}/{self.draws}",
            f"{one.found:.3g}/{self.draws}",
        ]

    def _over(self) -> str:
        return "the median" if self.skewed else "on average"

    def _legend(self) -> list[tuple[str, str]]:
        detected = f"the smallest effect that is detected in {percent(POWER)} of studies"
        covered = f"studies whose interval covers the true {self._truth()}"
        return [
            ("Half-width", f"{self._of_interval()}, {self._over()} over the studies"),
            *([("Detectable", detected)] if self.measure == DIFFERENCE else []),
            ("Noise", "share of the squared standard error due to privacy noise"),
            *([("Coverage", covered)] if any(one.covered is not None for one in self.answers) else []),
            ("Power", f"studies whose interval excludes {_NULLS.get(self.measure, 'zero effect')}"),
        ]

    def _truth(self) -> str:
        """Return what intervals should cover; a number where all effects of all studies have that mean."""
        if self.measure != DIFFERENCE:
            return self.measure.replace("_", " ") if self.measure != NEEDED else "number needed to treat"
        if self.question == "event_study" or self.assumed.denominator is not None:
            return "effect"
        return f"effect, on average {self.assumed.effect:.4g}"


def _percent(level: float) -> str:
    # Looks have levels of any number of digits.
    return f"{100 * level:.4g} %"


def _said(half: float) -> str:
    return rounded(half, half) if isfinite(half) else "no end"


def _short(method: str) -> str:
    return method if len(method) <= _METHOD else method[: _METHOD - 1] + "…"
