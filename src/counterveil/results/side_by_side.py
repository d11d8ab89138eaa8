"""Several results in one table: `etable(...)`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from counterveil.errors import refusal
from counterveil.privacy import Guarantee
from counterveil.report import View
from counterveil.report.side_by_side import drawn_side_by_side, side_by_side
from counterveil.results.regression import Compliance, Regression
from counterveil.results.released import ReleasedAnswer
from counterveil.results.shown import Shown


@dataclass(frozen=True, slots=True, repr=False)
class ResultTable(Shown):
    """Results side by side, a column each; nothing was spent on it."""

    results: tuple[ReleasedAnswer | Regression | Compliance, ...]
    names: tuple[str, ...]

    def _rows(self) -> list[dict[str, Any]]:
        """Return the rows of all results, each with the name of its column."""
        pairs = zip(self.names, self.results, strict=True)
        return [{"column": name} | row for name, result in pairs for row in result._rows()]

    def view(self, full: bool = False) -> View:
        """Return what is shown: the table, and how its cells are read; in full, every guarantee."""
        return side_by_side([result.report_facts() for result in self.results], self.names, full)

    def drawn_facts(self) -> dict[str, Any]:
        """Return the effects of all columns, for one forest."""
        return drawn_side_by_side([result.report_facts() for result in self.results], self.names)

    @property
    def guarantee(self) -> Guarantee:
        """That of the first column that warns, else of the first."""
        found = [result.guarantee for result in self.results]
        return next((one for one in found if one.warning), found[0])

    @property
    def spent(self) -> str:
        """What each column cost."""
        return "; ".join(f"{name} {one.spent}" for name, one in zip(self.names, self.results, strict=True))

    def __repr__(self) -> str:
        return f"<ResultTable: {', '.join(self.names)}>"


def etable(results: Iterable[Shown] | Mapping[str, Shown]) -> ResultTable:
    """Return several results as one table: a column each, effects with errors and intervals, and what they cost.

    Args:
        results: what `ate`, `arms`, `groups`, `outcomes`, `survival`, `event_study`, `cate`, `pool` and
            `moments(...).regress(...)` returned; a mapping names the columns.
    """
    named = results if isinstance(results, Mapping) else dict(enumerate(results, 1))
    columns = [one for one in named.values() if isinstance(one, ReleasedAnswer | Regression | Compliance)]
    others = [one for one in named.values() if not any(one is each for each in columns)]
    if others or not columns:
        raise refusal("CV-P029", kind=type(others[0]).__name__ if others else "nothing")
    names = tuple(f"({name})" if isinstance(name, int) else str(name) for name in named)
    return ResultTable(tuple(columns), names)
