"""Koga, Chaudhuri and Page on treatment effects over several sites: figures, claims and what the page says of them."""

from __future__ import annotations

from counterveil_lab.reproduce.page import Figure, Paper
from counterveil_lab.reproduce.papers.multi_site import claims, errors, remarks, sensitivities


def _errors(number: int, title: str) -> Figure:
    cells = errors.cells_of(number)
    return Figure(f"figure-{number}", title, cells, errors.run, errors.table, sensitivities.draw_errors)


PAPER = Paper(
    name="multi-site",
    reference="Koga, Chaudhuri and Page: Differentially Private Multi-Site Treatment Effect Estimation",
    figures=(
        _errors(3, "Figure 3 (both versions): IST, two sites"),
        _errors(4, "Figure 4 (preprint: Figure 5): IST, three sites"),
        _errors(5, "Figure 5 (preprint: Figure 4): STAR, four kinds of school"),
        Figure(
            "figure-6",
            "Figure 6 (both versions): smooth sensitivity by sample size",
            sensitivities.by_size,
            sensitivities.run,
            sensitivities.table,
            sensitivities.draw_by_size,
        ),
        Figure(
            "figure-7",
            "Figure 7 (both versions): smooth sensitivity by imbalance",
            sensitivities.by_slope,
            sensitivities.run,
            sensitivities.table,
            sensitivities.draw_by_slope,
        ),
        _errors(8, "Figure 8 (both versions): Synth, IHDP and LaLonde, two sites"),
        _errors(9, "Figure 9 (both versions): Synth, three sites"),
        _errors(10, "Figure 10 (both versions): IHDP, three sites"),
        _errors(11, "Figure 11 (both versions): LaLonde, three sites"),
        Figure(
            "auto",
            'Not in the paper: what method="auto" answers with at one of two equal sites',
            remarks.cells,
            remarks.run,
            remarks.table,
        ),
    ),
    claims=(*claims.CLAIMS, *claims.PRIVACY_CLAIMS),
    remarks=remarks.remarks,
)
