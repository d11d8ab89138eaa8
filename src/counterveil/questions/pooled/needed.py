"""Numbers needed to treat over several sites, from the average of their differences."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from counterveil.results.effect import Effect, Linear
from counterveil.results.measure_words import DIFFERENCE, NEEDED
from counterveil.results.measures import MeasureResult, Needed, measure_terms, refuse_of_difference
from counterveil.results.result import OneEffect
from counterveil.results.stored import reads_facts


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PooledNeeded(MeasureResult):
    """The number needed to treat of an average of differences; `pooled` is that average with its sites."""

    pooled: OneEffect

    @property
    def table(self) -> tuple[Effect, ...]:
        """The number of every site, and that of the average."""
        return tuple(_needed(one) for one in self.pooled.table)

    def as_measure(self, measure: str) -> OneEffect:
        """Return the average of the differences, or the result itself; ratios need the means of both arms."""
        refuse_of_difference(self, measure)
        return self.pooled if measure == DIFFERENCE else self

    def tidy(self) -> list[dict[str, Any]]:
        """Return a dictionary for each site (`type` is "study") and one for the average ("summary")."""
        rows = zip(self.pooled.tidy(), self.table, strict=True)
        return [row | effect.row() | {"measure": NEEDED} for row, effect in rows]

    def _numbers(self) -> dict[str, Any]:
        return self.pooled._numbers() | {"measure": NEEDED}

    def _sentence(self) -> str:
        said = MeasureResult._sentence(self).replace("in the study", "in the sites")
        return f"{said}; differences are averaged over sites with the weights shown"

    def _shown(self) -> dict[str, Any]:
        found = self.pooled._shown()
        kept = {name: found[name] for name in ("heterogeneity", "prediction") if name in found}
        return MeasureResult._shown(self) | kept

    def report_facts(self) -> dict[str, Any]:
        """Return what reports and pictures show: a row for every site and one for all, and how far sites differ."""
        facts, average = MeasureResult.report_facts(self), self.pooled.report_facts()
        shown = zip(average["effects"], self.table, strict=True)
        kept = ("weight", "summary")
        rows = [effect.facts() | {name: row[name] for name in kept if name in row} for row, effect in shown]
        return facts | {
            "sites": average["sites"],
            "effects": rows,
            # Sites are compared, and the next one is predicted, on the scale of the difference.
            "notes": [*facts["notes"], *((name, _difference(text)) for name, text in average["notes"])],
        }

    @classmethod
    @reads_facts
    def from_dict(cls, facts: dict[str, Any]) -> PooledNeeded:
        """Return the result written by `to_dict`, pooled again from the sites' differences in it."""
        from counterveil.questions.pooled.pool import PooledResult  # which makes results of this kind

        return needed_of(PooledResult.from_dict(facts))


def needed_of(pooled: OneEffect) -> PooledNeeded:
    """Return the number needed to treat of an average of differences, with the weights of the sites."""
    terms = measure_terms(pooled)
    terms["method"] = f"differences, pooled: {pooled._shown()['method']}"
    weights = {f"weight_{row['site']}": row["weight"] for row in pooled._columns() if row["type"] == "study"}
    terms["details"] = pooled.details | weights
    return PooledNeeded.of(NEEDED, None, pooled.effect, pooled=pooled, **terms)


def _difference(text: str) -> str:
    return text.replace("its effect", "its difference").replace(
        "the sites' effects", "the sites' differences"
    )


def _needed(effect: Effect) -> Effect:
    assert isinstance(effect.known, Linear)
    return replace(effect, known=Needed(effect.known))
