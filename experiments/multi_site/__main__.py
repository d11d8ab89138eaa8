"""`python -m experiments.multi_site`: errors of pooled effects; prints tables, saves CSV and figures.

Needs COUNTERVEIL_DATA. Repetitions are kept in the folder of `--out`, so a run that was cut short goes on.
"""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from pathlib import Path

from experiments.multi_site.choice import chosen_methods
from experiments.multi_site.figures import draw
from experiments.multi_site.panels import PANELS
from experiments.multi_site.report import markdown, summary, write_csv
from experiments.multi_site.store import lines, run


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.multi_site")
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--figures", type=int, nargs="*", default=sorted({panel.figure for panel in PANELS}))
    parser.add_argument("--out", type=Path, default=Path("build/multi_site"))
    chosen = parser.parse_args()
    panels = [panel for panel in PANELS if panel.figure in chosen.figures]
    for panel in panels:
        run(chosen.out, panel, chosen.repetitions)
    tables = {panel: lines(chosen.out, panel, chosen.repetitions) for panel in panels}
    text = "# Mean absolute error of pooled effects, in ranges of the outcome (standard deviation)\n\n"
    text += "## Averaged over alphas\n\n" + summary(tables) + "\n## Panels\n\n"
    text += "\n".join(markdown(panel, table) for panel, table in tables.items())
    text += '\n## What method="auto" answers with\n\n' + chosen_methods()
    (chosen.out / "tables.md").write_text(text, encoding="utf-8")
    write_csv(chosen.out / "errors.csv", tables)
    print(text)
    if find_spec("matplotlib") is not None:
        for figure in chosen.figures:
            print(f"drawn: {draw(chosen.out, figure, tables).name}")


if __name__ == "__main__":
    main()
