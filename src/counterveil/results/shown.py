"""What results, plans and summaries share: rows as a data frame, text and HTML."""

from __future__ import annotations

from importlib import import_module
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, overload

from counterveil.errors import refusal
from counterveil.report import View, fragment, latex, markdown, page, plots, text_of
from counterveil.report.airlock import no_formula
from counterveil.results.elsewhere import missing_attribute

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


def finite(facts: Any) -> Any:
    """Return facts with None for every number that is not finite, which JSON cannot hold."""
    if isinstance(facts, dict):
        return {name: finite(value) for name, value in facts.items()}
    if isinstance(facts, list):
        return [finite(value) for value in facts]
    return None if isinstance(facts, float) and not isfinite(facts) else facts


class Shown:
    """Something that is printed, tabulated, drawn and shown in notebooks.

    Examples
    --------
    >>> import counterveil as cv
    >>> trial = cv.datasets.lalonde()
    >>> noise = cv.SeededNoise(1)
    >>> result = cv.ate(trial.frame, trial.study, protects="outcome", epsilon=1, noise=noise)
    >>> print(result.summary().splitlines()[1])
    Effect of train on re78
    """

    __slots__ = ()
    _PLOT: ClassVar[str] = "forest"  # the function of `counterveil.plots` that draws it

    def _rows(self) -> list[dict[str, Any]]:
        """Return one dictionary an effect, with the names that R's `broom` uses, dots replaced by underscores."""
        raise NotImplementedError

    def tidy(self) -> list[dict[str, Any]]:
        """Return one dictionary per effect, with the names of R's `broom` and underscores for dots.

        Returns
        -------
        list of dict
            A row per effect, with the columns below.

        Notes
        -----
        Columns, as far as a result has them:

        - ``term``, ``estimand``: the treatment; ATE, ATT, ATC, ATO, CATE or "gain per person".
        - ``contrast``, ``arm``, ``reference``, ``group``, ``period``, ``outcome``, ``size``,
          ``size_sd``: what the effect is of; ``size_sd`` is 0 where sizes are public.
        - ``policy``, ``cost``, ``share``, ``threshold``: of policies and targeting curves.
        - ``site``, ``type``, ``weight``: of pooled results.
        - ``point`` and the covariates: of effects as a function.
        - ``estimate``, ``std_error``, ``se_sampling``, ``se_noise``, ``statistic``, ``p_value``: with
          privacy noise.
        - ``conf_low``, ``conf_high``, ``level``, ``conf_of``, ``assumptions``: the interval, what it is
          for, and what it rests on.
        - ``conf_low_simultaneous``, ``conf_high_simultaneous``, ``adj_p_value``: of several effects together.
        - ``epsilon``, ``delta``, ``protects``, ``proof``: the guarantee.

        An apostrophe stands before a name or a label that a spreadsheet would take for a formula.

        Examples
        --------
        >>> import counterveil as cv
        >>> trial = cv.datasets.lalonde()
        >>> noise = cv.SeededNoise(1)
        >>> result = cv.ate(trial.frame, trial.study, protects="outcome", epsilon=1, noise=noise)
        >>> row = result.tidy()[0]
        >>> row["term"], row["estimand"], row["epsilon"]
        ('train', 'ATE', 1.0)
        """
        return [{no_formula(name): no_formula(cell) for name, cell in row.items()} for row in self._rows()]

    def view(self, full: bool = False) -> View:
        """Return what is shown: a summary, or everything.

        Parameters
        ----------
        full : bool, default False
            True for everything, False for a summary.

        Returns
        -------
        View
            Title, tables and lines of text, as `summary`, `full` and `to_html` print them.
        """
        raise NotImplementedError

    @property
    def effects(self) -> Any:
        """Rows of `tidy` as a data frame of pandas, polars or pyarrow, whichever is installed first.

        `tidy` lists the columns, which have the names of R's `broom` with underscores for dots. Without any of
        the three packages it raises CV-E070.
        """
        return frame(self.tidy())

    def summary(self) -> str:
        """Return the effects, the guarantee and what is not covered as a few lines of text.

        Returns
        -------
        str
            What ``print(result)`` prints.
        """
        return text_of(self.view())

    def full(self) -> str:
        """Return everything as text: all tables, the whole guarantee, every release and its noise.

        Returns
        -------
        str
            Lines of at most 79 characters.
        """
        return text_of(self.view(full=True))

    def document(self) -> View:
        """Return what files show: everything, with pictures.

        Returns
        -------
        View
            Title, tables, sections and lines of text.
        """
        return self.view(full=True)

    @overload
    def to_html(self, path: None = None) -> str: ...
    @overload
    def to_html(self, path: str | Path) -> Path: ...
    def to_html(self, path: str | Path | None = None) -> str | Path:
        """Return everything as a self-contained page, or write it to a file.

        Parameters
        ----------
        path : str or Path, optional
            File to write.

        Returns
        -------
        str or Path
            The page, or the path of the file.

        Raises
        ------
        CounterveilError
            The file cannot be written: CV-P021.
        """
        return written_to(path, page(self.document()))

    @overload
    def to_markdown(self, path: None = None) -> str: ...
    @overload
    def to_markdown(self, path: str | Path) -> Path: ...
    def to_markdown(self, path: str | Path | None = None) -> str | Path:
        """Return everything as Markdown, without pictures, or write it to a file.

        Parameters
        ----------
        path : str or Path, optional
            File to write.

        Returns
        -------
        str or Path
            The text, or the path of the file.

        Raises
        ------
        CounterveilError
            The file cannot be written: CV-P021.

        Examples
        --------
        >>> import counterveil as cv
        >>> trial = cv.datasets.lalonde()
        >>> noise = cv.SeededNoise(1)
        >>> result = cv.ate(trial.frame, trial.study, protects="outcome", epsilon=1, noise=noise)
        >>> "train" in result.to_markdown()
        True
        """
        return written_to(path, markdown(self.document()))

    @overload
    def to_latex(self, path: None = None) -> str: ...
    @overload
    def to_latex(self, path: str | Path) -> Path: ...
    def to_latex(self, path: str | Path | None = None) -> str | Path:
        r"""Return the table for a paper (LaTeX with booktabs), or write it to a file.

        Parameters
        ----------
        path : str or Path, optional
            File to write.

        Returns
        -------
        str or Path
            The table, or the path of the file.

        Raises
        ------
        CounterveilError
            The file cannot be written: CV-P021.

        Examples
        --------
        >>> import counterveil as cv
        >>> trial = cv.datasets.lalonde()
        >>> noise = cv.SeededNoise(1)
        >>> result = cv.ate(trial.frame, trial.study, protects="outcome", epsilon=1, noise=noise)
        >>> r"\toprule" in result.to_latex()
        True
        """
        return written_to(path, latex(self.view(full=True)))

    def plot(self, *, ax: Any = None) -> Any:
        """Return matplotlib axes with a picture; it spends nothing.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; a new figure by default.

        Returns
        -------
        matplotlib.axes.Axes
            Axes with a forest of effects, or the picture of this kind of result (`counterveil.plots`).

        Raises
        ------
        CounterveilError
            matplotlib, the extra ``plots``, is not installed: CV-E040.
        """
        return getattr(plots, self._PLOT)(self, ax=ax)

    def report_facts(self) -> dict[str, Any]:
        """Return what is printed, as facts.

        Returns
        -------
        dict
            Facts by name; numbers may be infinite.
        """
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready facts.

        Returns
        -------
        dict
            Facts by name; what is infinite is None.
        """
        found: dict[str, Any] = finite(self.report_facts())
        return found

    def drawn_facts(self) -> dict[str, Any]:
        """Return what a forest shows: effects with intervals, and what its axis is.

        Returns
        -------
        dict
            Facts by name; numbers may be infinite.
        """
        return self.report_facts()

    def balance(self) -> Shown:
        """Return the balance of public covariates before and after adjustment.

        Returns
        -------
        Balance
            Standardised differences and ratios of variances, by covariate.

        Raises
        ------
        CounterveilError
            There is none: CV-P022.
        """
        raise refusal("CV-P022b", kind=type(self).__name__)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            # Python asks here too where a property of this object raised AttributeError: that error is the one to see.
            own = getattr(type(self), name, None)
            if isinstance(own, property):
                return own.__get__(self)
            raise AttributeError(missing_attribute(type(self), name), name=name, obj=self)

    def __dir__(self) -> list[str]:
        return [name for name in object.__dir__(self) if not name.startswith("_")]

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        return fragment(self.view())


def written_to(path: str | Path | None, text: str) -> str | Path:
    """Return a text, or the path of the file that it was written to."""
    if path is None:
        return text
    try:
        target = Path(path)
        target.write_text(text if text.endswith("\n") else f"{text}\n", encoding="utf-8")
    except (OSError, TypeError, ValueError) as fault:
        raise refusal("CV-P021", path=path, got=type(fault).__name__) from None
    return target
