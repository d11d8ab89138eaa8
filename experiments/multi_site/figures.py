"""The figures: mean absolute error against alpha, a column a panel, the published forms above ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from experiments.multi_site.panels import ALPHAS, Panel
from experiments.multi_site.report import alpha_name
from experiments.multi_site.store import Line

_MARKS = {"MVAgg": "o-", "AggAll": "s--", "AggLargest": "^:", "IVW": "d-."}
# Forms that are drawn in rows; the others are lines for comparison in every row.
_ROWS = ("published, global", "published, smooth", "published", "ours")
_COMPARED = {"difference in means": "0.45", "zero": "0.75"}


def draw(folder: Path, figure: int, tables: dict[Panel, list[Line]]) -> Path:
    """Draw one figure as a PNG file and return its path; needs matplotlib (the extra `plots`)."""
    import matplotlib as mpl  # an extra: tables need none

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    panels = [panel for panel in tables if panel.figure == figure]
    present = {line.form for panel in panels for line in tables[panel]}
    forms = [form for form in _ROWS if form in present]
    shape = (len(forms), len(panels))
    plot, axes = plt.subplots(
        *shape, figsize=(2.6 * shape[1] + 0.8, 2.1 * shape[0] + 0.9), squeeze=False, sharex=True, sharey="row"
    )
    for column, panel in enumerate(panels):
        for row, form in enumerate(forms):
            _panel(axes[row][column], tables[panel], form)
        sites = "schools" if panel.sizes is None else " : ".join(map(str, panel.sizes))
        axes[0][column].set_title(f"{panel.study}, {sites}", fontsize=9)
        axes[-1][column].set_xlabel("alpha", fontsize=8)
    for row, form in enumerate(forms):
        axes[row][0].set_ylabel(f"{form}\nmean abs. error", fontsize=8)
    handles, labels = axes[-1][0].get_legend_handles_labels()
    plot.legend(handles, labels, loc="upper center", ncol=min(6, len(labels)), fontsize=7, frameon=False)
    plot.tight_layout(rect=(0, 0, 1, 0.94))
    path = folder / f"figure{figure:02d}.png"
    plot.savefig(path, dpi=64)
    plt.close(plot)
    return path


def _panel(axes: Any, table: list[Line], form: str) -> None:
    places = range(len(ALPHAS))
    for line in table:
        if line.form == form:
            axes.errorbar(
                places,
                line.mean,
                yerr=[line.mean - (line.mean - line.sd).clip(line.mean / 10), line.sd],
                fmt=_MARKS[line.aggregation],
                markersize=3,
                linewidth=1,
                elinewidth=0.5,
                capsize=1.5,
                label=line.aggregation,
            )
        elif line.form in _COMPARED and form == "ours":
            axes.plot(places, line.mean, color=_COMPARED[line.form], linewidth=1, label=line.form)
    axes.set_yscale("log")
    axes.set_xticks(list(places), [alpha_name(alpha) for alpha in ALPHAS], fontsize=7)
    axes.tick_params(axis="y", labelsize=7)
    axes.grid(alpha=0.3, linewidth=0.5)
