"""Print errors on instances that played no part in tuning: `python -m experiments.weighting_tuning.report`."""

from __future__ import annotations

from experiments.weighting_tuning.comparison import (
    EPSILONS,
    balanced_by_default,
    equal_weights,
    one_draw,
    print_row,
    ratio_row,
    two_draws,
)
from experiments.weighting_tuning.instances import REPORTED, TUNING, load

METHODS = {
    "limited matching, one staircase draw": lambda i, e: i.limited_matching(e)[0],
    "weights near matching": lambda i, e: balanced_by_default(i, e, True),
    "weights for population balance": lambda i, e: balanced_by_default(i, e, False),
    "difference in means": lambda i, e: equal_weights(i),
}


def main() -> None:
    for title, groups in (("other instances", REPORTED), ("tuning instances", TUNING)):
        for group, names in groups.items():
            instances = [load(name) for name in names]
            paper = [[two_draws(i, e) for i in instances] for e in EPSILONS]
            for field, of in (
                ("to_matching", "mean absolute error to matching"),
                ("to_truth", "rms error to truth"),
            ):
                if field == "to_truth" and instances[0].effect != instances[0].effect:
                    continue
                print(f"{group} ({title}), {of}, relative; epsilon {EPSILONS}")
                print_row("two Laplace draws", [_mean(getattr(e, field) for e in row) for row in paper])
                if field == "to_truth":
                    off = _mean(abs(i.matched_effect / i.effect - 1) for i in instances)
                    print_row("matching without privacy", [off] * len(EPSILONS))
                for label, method in METHODS.items():
                    errors = [
                        _mean(getattr(one_draw(i, method(i, e), e), field) for i in instances)
                        for e in EPSILONS
                    ]
                    print_row(label, errors)
                for label, method in METHODS.items():
                    row = ratio_row(names, method)[0 if field == "to_matching" else 1]
                    print_row(f"  over two draws: {label}", row)


def _mean(values) -> float:
    listed = list(values)
    return sum(listed) / len(listed)


if __name__ == "__main__":
    main()
