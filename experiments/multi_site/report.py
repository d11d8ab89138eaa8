"""Tables of the errors: Markdown to read, CSV to compute with."""

from __future__ import annotations

import csv
from pathlib import Path

from experiments.multi_site.panels import ALPHAS, Panel
from experiments.multi_site.store import Line

ALPHA_NAMES = {0.125: "1/8", 0.25: "1/4", 0.5: "1/2"}


def alpha_name(alpha: float) -> str:
    return ALPHA_NAMES.get(alpha, f"{alpha:g}")


def title(panel: Panel) -> str:
    sites = (
        "rural : suburban : inner city : urban" if panel.sizes is None else " : ".join(map(str, panel.sizes))
    )
    return f"Figure {panel.figure}: {panel.study}, {panel.sites} sites, {sites}, epsilon of the first {panel.epsilon:g}"


def markdown(panel: Panel, table: list[Line]) -> str:
    """Return the panel's table: mean absolute error and, in brackets, its standard deviation."""
    alphas = " | ".join(f"alpha {alpha_name(alpha)}" for alpha in ALPHAS)
    rows = [f"| form | pooled by | {alphas} |", "|---|---|" + "---|" * len(ALPHAS)]
    for line in table:
        cells = " | ".join(f"{m:.3g} ({round(s, 9):.2g})" for m, s in zip(line.mean, line.sd, strict=True))
        rows.append(f"| {line.form} | {line.aggregation} | {cells} |")
    return f"### {title(panel)}\n\n" + "\n".join(rows) + "\n"


def summary(tables: dict[Panel, list[Line]]) -> str:
    """Return one row a panel: errors averaged over alphas, and how many times ours is nearer, least to most."""
    rows = [
        "| figure | study | sites | repetitions | published, MVAgg | ours, MVAgg | times nearer, least to most "
        "| ours, IVW | difference in means | without privacy | zero |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for panel, table in tables.items():
        found = {(line.form, line.aggregation): line for line in table}
        published = found.get(("published, smooth", "MVAgg")) or found["published", "MVAgg"]
        ours, other = found["ours", "MVAgg"], found["ours", "IVW"]
        # In trials ours is a difference in means itself.
        plain = found.get(("difference in means", "MVAgg"), ours)
        times = published.mean / ours.mean
        shown = [published, ours, other, plain, found["without privacy", "AggAll"], found["zero", ""]]
        cells = [f"{line.mean.mean():.3g}" for line in shown]
        cells.insert(2, f"{times.min():.1f} to {times.max():.1f}")
        sites = "schools" if panel.sizes is None else ":".join(map(str, panel.sizes))
        rows.append(
            f"| {panel.figure} | {panel.study} | {sites} | {ours.repetitions} | {' | '.join(cells)} |"
        )
    return "\n".join(rows) + "\n"


def write_csv(path: Path, tables: dict[Panel, list[Line]]) -> None:
    """Write one row for each panel, form, way of pooling and alpha."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(
            [
                "figure",
                "study",
                "sites",
                "form",
                "pooled_by",
                "alpha",
                "mean_absolute_error",
                "sd",
                "repetitions",
            ]
        )
        for panel, table in tables.items():
            sites = "schools" if panel.sizes is None else ":".join(map(str, panel.sizes))
            for line in table:
                for alpha, mean, sd in zip(ALPHAS, line.mean, line.sd, strict=True):
                    known = [panel.figure, panel.study, sites, line.form, line.aggregation, alpha]
                    writer.writerow([*known, f"{mean:.6g}", f"{sd:.6g}", line.repetitions])
