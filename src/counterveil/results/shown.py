"""What results, plans and summaries share: rows as a data frame, text and HTML."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from counterveil.errors import refusal
from counterveil.privacy import Estimand, Protected
from counterveil.privacy.caveats import Fact
from counterveil.report import View, fragment, markdown, page, text_of
from counterveil.report.airlock import no_formula
from counterveil.report.caveats import people_words

# Rows as a data frame of whichever library is installed.


# In this order; pyarrow makes a table of a list of rows by another name.
_MAKERS = (("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "Table"))


def frame(rows: list[dict[str, Any]]) -> Any:
    """Return rows as a frame of pandas, polars or pyarrow, the first of them that is installed."""
    for library, kind in _MAKERS:
        try:
            maker = getattr(import_module(library), kind)
        except ImportError:
            continue
        return maker.from_pylist(rows) if library == "pyarrow" else maker(rows)
    raise refusal("CV-E070")


# What every result shares: where it comes from, and how it is shown.


class Shown:
    """Something that is printed, tabulated and shown in notebooks; classes say what its views and rows are."""

    __slots__ = ()

    def _rows(self) -> list[dict[str, Any]]:
        """Return one dictionary an effect, with the names that R's `broom` uses, dots replaced by underscores."""
        raise NotImplementedError

    def tidy(self) -> list[dict[str, Any]]:
        """Return one dictionary an effect, with the names that R's `broom` uses, dots replaced by underscores.

        An apostrophe stands before a name or a label that a spreadsheet would take for a formula.
        """
        return [{no_formula(name): no_formula(cell) for name, cell in row.items()} for row in self._rows()]

    def view(self, full: bool = False) -> View:
        """Return what is shown: a summary, or everything."""
        raise NotImplementedError

    @property
    def effects(self) -> Any:
        """The rows of `tidy()` as a frame of pandas, polars or pyarrow, whichever is installed first."""
        return frame(self.tidy())

    def summary(self) -> str:
        """Return the effects, the guarantee and what is not covered as a few lines of text."""
        return text_of(self.view())

    def full(self) -> str:
        """Return everything that is known as text: what is public, details, what was spent, proofs, remarks."""
        return text_of(self.view(full=True))

    def document(self) -> View:
        """Return what files show: everything, with pictures."""
        return self.view(full=True)

    def to_html(self, path: str | Path) -> Path:
        """Write everything as a self-contained page; return its path."""
        return _written(page(self.document()), path)

    def to_markdown(self, path: str | Path) -> Path:
        """Write everything as Markdown, without pictures; return its path."""
        return _written(markdown(self.document()), path)

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        return fragment(self.view())


def _written(text: str, path: str | Path) -> Path:
    target = Path(path)
    target.write_text(text, encoding="utf-8")
    return target


def sentence_of(estimand: Estimand, whose: Protected, population: Fact | None) -> dict[str, str]:
    """Return what was estimated as a fact, none where the estimand's own sentence says it."""
    if whose is not Protected.CLUSTER and population is None:
        return {}
    everyone = "the clusters of the study, each counting once" if whose is Protected.CLUSTER else None
    if population is None:
        return {"sentence": estimand.sentence_of(everyone)}
    kept = people_words(population)
    if estimand is Estimand.ATE and everyone is None:
        return {"sentence": estimand.sentence_of(kept)}
    return {"sentence": f"{estimand.sentence_of(everyone)}, among {kept}"}
