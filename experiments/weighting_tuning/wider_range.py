"""Print the same ratios when the declared range is wider: `python -m experiments.weighting_tuning.wider_range`.

The settings are in units of the range, so a range declared twice or four times too wide is also a test of
settings twice or four times too large. Tuning instances only.
"""

from __future__ import annotations

from dataclasses import replace

from experiments.weighting_tuning.comparison import balanced_by_default, one_draw, print_row, two_draws
from experiments.weighting_tuning.instances import TUNING, load

EPSILONS = (0.5, 1.0, 2.0, 4.0)


def main() -> None:
    print(f"Errors over those of two Laplace draws; epsilon {EPSILONS} to matching, then to the truth")
    for times in (1, 2, 4):
        for group, names in TUNING.items():
            wide = [replace(i, outcome=i.outcome / times, effect=i.effect / times) for i in map(load, names)]
            for near in (True, False):
                rows: tuple[list[float], list[float]] = ([], [])
                for epsilon in EPSILONS:
                    ours = [one_draw(i, balanced_by_default(i, epsilon, near), epsilon) for i in wide]
                    theirs = [two_draws(i, epsilon) for i in wide]
                    rows[0].append(sum(e.to_matching for e in ours) / sum(e.to_matching for e in theirs))
                    rows[1].append(sum(e.to_truth for e in ours) / sum(e.to_truth for e in theirs))
                mode = "near matching" if near else "population balance"
                print_row(f"range x {times}, {group}, {mode}", rows[0] + rows[1])


if __name__ == "__main__":
    main()
