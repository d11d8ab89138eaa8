"""What the page of the paper says besides claims: what is compared with what, and this library beside the paper."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

import counterveil as cv
from counterveil.errors import CounterveilError
from counterveil.numerics.arrays import Floats
from counterveil_lab.reproduce.page import markdown
from counterveil_lab.reproduce.papers.multi_site.judging import LOW, MATCHED, Lines
from counterveil_lab.reproduce.papers.multi_site.panels import PANELS, Panel, cut, load
from counterveil_lab.reproduce.protocol import Cell, Row, Tables

_STUDIES = (
    ("IST", 1, "outcome"),
    ("STAR", 1, "outcome"),
    ("Synth", 1, "record"),
    ("IHDP", 5, "record"),
    ("LaLonde", 5, "record"),
)


def cells(quick: bool) -> Sequence[Cell]:
    """Return a cell for each study; quick or not, it is one question for each alpha."""
    del quick
    return [
        {"study": name, "epsilon": epsilon, "protects": unit, "seed": 0} for name, epsilon, unit in _STUDIES
    ]


def run(cell: Cell) -> list[Row]:
    """Return the method that is chosen, or the refusal, at alpha 1/8, 1 and 8."""
    name, epsilon, seed = str(cell["study"]), float(cell["epsilon"] or 0), int(cell["seed"] or 0)
    source = load(name, seed)
    site = cut(Panel(0, name, (1, 1), epsilon), source, np.random.default_rng(seed))[0]
    found: dict[str, str] = {}
    for alpha, text in ((0.125, "alpha 1/8"), (1, "alpha 1"), (8, "alpha 8")):
        unit, noise = str(cell["protects"]), cv.SeededNoise(seed)
        try:
            asked = cv.ate(site.frame, source.study, protects=unit, epsilon=epsilon * alpha, noise=noise)
            found[text] = asked.method
        except CounterveilError as refusal:
            found[text] = f"refused, nothing spent: {refusal.code}"
    return [{"people": len(site.outcome), **found}]


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows as they are."""
    return rows[["study", "people", "protects", "epsilon", "alpha 1/8", "alpha 1", "alpha 8"]]


_COMPARED = """## What is compared

The preprint and the published version have the same figures, but differ in numbers 4 and 5, which are the other
way round, and in IVW, which the published version alone has. Numbers here are those of the published version. The
lines of the printed figures are not in the text, so that claims of the text are judged, not values. Sizes and slopes
of Figures 6 and 7 are chosen here. A full run has 100 repetitions, as the paper. One error
is clearly smaller than another where that is 1.25 times it or more: two standard errors of a ratio of two means of
100. Where a lead depends on less, it cannot be checked; a quick run of 20 repetitions decides less than that.

- Site j spends alpha^((j-1)/(J-1)) times the epsilon of the first site (1; for IHDP and LaLonde 5). Two sites
  of equal size, three in four proportions, STAR's four kinds of school. Errors are absolute, in ranges of the
  outcome. The first site answers once for all alphas of a repetition.
- **Measured from**: the true effect 0.5 for Synth, drawn anew for every repetition; otherwise the estimate on
  all rows without privacy: difference in means, or for IHDP and LaLonde one-to-one matching as published
  (people without a match count as zero). That is the published method's own yardstick; ours estimates a
  slightly different average, and the difference counts as an error of ours.
- **published**: their site methods drawn from the printed mechanisms, with delta 1e-5: difference in means with
  Laplace noise on four sums; matching with noise from the global or the printed smooth sensitivity. Their
  pooling takes the released variance, here not below that of the noise.
- **ours**: `cv.ate` and `cv.pool` as they come, with delta 0. Trials: difference in means with private
  outcomes. Otherwise `method="stratified"` with private records. The outcome ranges are those of the loaders:
  declared, not read off the data.
- A site with fewer than two people in an arm (37 infants of IHDP, 18:1:1) cannot be attached: with ours it
  gives no result and the others are pooled.
- **auto**: what `method="auto"` chooses; the last table shows it for one of two equal sites. LaLonde is
  declared as the trial it is and gets an unadjusted contrast.
- **difference in means**: private, unadjusted, pooled by MVAgg. **without privacy**: sites' own estimates
  averaged by size. **zero**: always 0.
- IHDP is matched on three binary covariates (x7, x9, x14: sex, mother married, first born), since the paper
  does not name its three."""

_HEAD = (
    "figure",
    "study",
    "sites",
    "published, MVAgg",
    "ours, MVAgg",
    "published / ours, least to most",
    "ours, IVW",
    "difference in means",
    "without privacy",
    "zero",
)


def remarks(tables: Tables) -> str:
    """Return the page's text about the comparison, with a table of the panels that are finished."""
    panels = tuple(panel for panel in PANELS if f"figure-{panel.figure}" in tables)
    parts = [_COMPARED]
    if panels:
        parts += ["## This library beside the paper", "Mean absolute errors averaged over alphas."]
        parts += [
            markdown(_HEAD, [_row(Lines(tables), panel) for panel in panels]),
            _words(Lines(tables), panels),
        ]
    return "\n\n".join(parts)


def _row(lines: Lines, panel: Panel) -> tuple[str, ...]:
    matched = panel in MATCHED
    times = _times(lines, panel)
    shown = [
        lines.of(panel, "published, smooth" if matched else "published"),
        lines.of(panel, "ours"),
        lines.of(panel, "ours", "IVW"),
        # In trials ours is a difference in means itself.
        lines.of(panel, "difference in means" if matched else "ours"),
        lines.of(panel, "without privacy", "AggAll"),
        lines.of(panel, "zero", "-"),
    ]
    cells = [f"{one.mean():.3g}" for one in shown]
    cells.insert(2, f"{times.min():.1f} to {times.max():.1f}")
    return (str(panel.figure), panel.study, panel.cut, *cells)


def _times(lines: Lines, panel: Panel) -> Floats:
    """Return how many times ours the error of the published system is, for each alpha."""
    found: Floats = lines.of(panel, "published, smooth" if panel in MATCHED else "published") / lines.of(
        panel, "ours"
    )
    return found


def _words(lines: Lines, panels: tuple[Panel, ...]) -> str:
    """Return what the table comes to: where ours is nearer, and where something simpler is."""
    found = []
    for kind, own in (
        ("Trials", [panel for panel in panels if panel not in MATCHED]),
        ("Matching", [panel for panel in panels if panel in MATCHED]),
    ):
        if own:
            times = np.concatenate([_times(lines, panel) for panel in own])
            found.append(
                f"- **{kind}**: the published error is {times.min():.1f} to {times.max():.0f} times ours, which have "
                "delta 0."
            )
    for study in ("Synth", "IHDP", "LaLonde"):
        own = [panel for panel in panels if panel.study == study]
        if own:
            ratio = np.concatenate([lines.of(p, "difference in means") / lines.of(p, "ours") for p in own])
            found.append(
                f"- A private difference in means has {ratio.min():.2g} to {ratio.max():.2g} times the error of ours "
                f"on {study}{_REASONS[study]}"
            )
    beaten = [
        f"{panel.study} {panel.cut}"
        for panel in panels
        if (lines.of(panel, "zero", "-") < lines.of(panel, "ours"))[LOW]
    ]
    if beaten:
        found.append(f"- At alpha 1/8 the answer zero is nearer than ours: {', '.join(beaten)}.")
    return "\n".join(found)


_REASONS = {
    "Synth": ", where adjustment matters.",
    "IHDP": ": its arms hardly differ in the covariates matched on, so that adjustment costs noise and brings nothing. "
    "At large alpha ours stops where strata with one treated in five count for less than their people.",
    "LaLonde": ", a trial: adjustment costs noise and brings nothing.",
}
