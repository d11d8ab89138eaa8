"""Coverage and standard errors of regressions from released moments, beside other estimators.

python -m experiments.regressions               # five tables, 200 draws a row: about an hour of CPU
python -m experiments.regressions --draws 40    # fewer draws
python -m experiments.regressions --table errors
python -m experiments.regressions --table shapes  # private outcomes, rare and skewed: 3 minutes
python -m experiments.regressions --table coverage --rows 5000    # rows of one size
python -m experiments.regressions --table coverage --first 20000  # other seeds
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import numpy as np

from experiments.regressions.designs import FIRST_SEED, REPORTED, TUNING, WEAK, Design, ancova, least_squares
from experiments.regressions.rivals import difference_in_means, noisy_gram, ordinary
from experiments.regressions.shapes import shapes

BUDGETS = (
    (5000, "1", "1e-6", "record"),
    (50_000, "1", "1e-6", "record"),
    (50_000, "1", "0", "record"),
)
OUTCOMES = ((5000, "1", "1e-6", "outcome"),)


def coverage(
    draws: int,
    designs: tuple[Design, ...] = REPORTED,
    first: int = FIRST_SEED,
    budgets: tuple[tuple[int, str, str, str], ...] = BUDGETS,
) -> Iterator[str]:
    """Yield coverage over all coefficients and the least of them, and standard errors beside non-private ones."""
    yield "| design | n | protects; epsilon, delta | coverage | least | noise, part | error / SE | SE / non-private |"
    yield "|---|---|---|---|---|---|---|---|"
    for design in designs:
        for rows, epsilon, delta, protects in budgets:
            found = [_one(design, rows, epsilon, delta, first + seed, protects) for seed in range(draws)]
            hits, errors, ratios, shares = (np.array(part) for part in zip(*found, strict=True))
            size = np.sqrt(np.mean(errors**2, axis=0))
            yield (
                f"| {design.name} | {rows:,} | {protects}; {epsilon}, {delta} | {hits.mean():.3f} | "
                f"{hits.mean(axis=0).min():.3f} | {np.nanmedian(shares):.2f} | {size.mean():.2f} | "
                f"{np.median(ratios):.2f} |"
            )


def _one(
    design: Design, rows: int, epsilon: str, delta: str, seed: int, protects: str = "record"
) -> tuple[list[float], ...]:
    """Return by coefficient: whether it is covered, its error in standard errors, private over non-private, noise."""
    data = design.draw(rows, np.random.default_rng(seed))
    fit = design.release(data, seed, epsilon, delta, protects).regress(design.formula)
    plain = ordinary(design, data)
    hits, errors, ratios, shares = [], [], [], []
    for name, truth in design.truth.items():
        one = fit.coefficient(name)
        low, high = one.interval()
        hits.append(float(low <= truth <= high))
        errors.append((one.estimate - truth) / one.std_error.total)
        ratios.append(one.std_error.total / plain[name][1])
        shares.append((one.std_error.noise / one.std_error.total) ** 2)
    return hits, errors, ratios, shares


def outcomes(draws: int) -> Iterator[str]:
    """Yield the same where outcomes alone are private."""
    return coverage(draws, budgets=OUTCOMES)


def weak(draws: int) -> Iterator[str]:
    """Yield coverage of Anderson-Rubin and of Wald intervals with weak instruments, and how many are unbounded."""
    yield "| design | n | first-stage F, median | Anderson-Rubin | unbounded | Wald |"
    yield "|---|---|---|---|---|---|"
    for design in WEAK:
        for rows in (5000, 50_000):
            kept, open_, wald, strength = [], [], [], []
            for seed in range(FIRST_SEED, FIRST_SEED + draws):
                data = design.draw(rows, np.random.default_rng(seed))
                fit = design.release(data, seed, "1", "1e-6").regress(design.formula)
                one, truth = fit.coefficient("d"), design.truth["d"]
                regions = fit.anderson_rubin or ()
                kept.append(any(low <= truth <= high for low, high in regions))
                open_.append(any(np.isinf(end) for ends in regions for end in ends))
                wald.append(abs(one.estimate - truth) <= 1.96 * one.std_error.total)
                strength.append(fit.first_stage)
            yield (
                f"| {design.name} | {rows:,} | {np.median(strength):.1f} | {np.mean(kept):.3f} | "
                f"{np.mean(open_):.2f} | {np.mean(wald):.3f} |"
            )


def errors(draws: int) -> Iterator[str]:
    """Yield errors of the treatment's coefficient and of the others, for this and other estimators."""
    yield "| design | estimator | RMSE of t | its SE | coverage of t | RMSE of slopes / non-private |"
    yield "|---|---|---|---|---|---|"
    rows, epsilon, delta = 50_000, "1", "1e-6"
    for design in (least_squares(0.5, 0.5), ancova(0.0)):
        answers: dict[str, Callable[..., dict[str, tuple[float, float]]]] = {
            "OLS, not private": lambda data, _seed, design=design: ordinary(design, data),
            "released moments": lambda data, seed, design=design: _moments(
                design, data, seed, epsilon, delta
            ),
            "plain noisy Gram": lambda data, seed, design=design: noisy_gram(
                design, data, seed, epsilon, delta
            ),
            "private difference in means": lambda data, seed, design=design: difference_in_means(
                design, data, seed, epsilon, delta
            ),
            "zero": lambda _data, _seed, design=design: dict.fromkeys(design.truth, (0.0, 0.0)),
        }
        found: dict[str, list[dict[str, tuple[float, float]]]] = {name: [] for name in answers}
        for seed in range(FIRST_SEED, FIRST_SEED + draws):
            data = design.draw(rows, np.random.default_rng(seed))
            for name, answer in answers.items():
                found[name].append(answer(data, seed))
        slopes = [name for name in design.truth if name not in ("t", "Intercept")]
        usual = _rmse(found["OLS, not private"], design.truth, slopes)
        for name, each in found.items():
            own = _rmse(each, design.truth, ["t"])
            error = np.median([one["t"][1] for one in each])
            hits = np.mean([abs(one["t"][0] - design.truth["t"]) <= 1.96 * one["t"][1] for one in each])
            others = f"{_rmse(each, design.truth, slopes) / usual:.2f}" if slopes[0] in each[0] else ""
            yield f"| {design.name} | {name} | {own:.4f} | {error:.4f} | {hits:.2f} | {others} |"


def _moments(
    design: Design, data: object, seed: int, epsilon: str, delta: str
) -> dict[str, tuple[float, float]]:
    fit = design.release(data, seed, epsilon, delta).regress(design.formula)  # type: ignore[arg-type]
    return {one.name: (one.estimate, one.std_error.total) for one in fit.coefficients}


def _rmse(each: list[dict[str, tuple[float, float]]], truth: dict[str, float], names: list[str]) -> float:
    if names[0] not in each[0]:
        return float("nan")
    return float(np.sqrt(np.mean([(one[name][0] - truth[name]) ** 2 for one in each for name in names])))


TABLES = {"coverage": coverage, "outcomes": outcomes, "weak": weak, "errors": errors, "shapes": shapes}


def main() -> None:
    """Print the chosen tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--table", choices=[*TABLES, "tuning"], action="append")
    parser.add_argument("--rows", type=int, help="coverage at this size alone")
    parser.add_argument("--first", type=int, default=FIRST_SEED, help="first seed of coverage")
    chosen = parser.parse_args()
    sized = tuple(one for one in BUDGETS if chosen.rows in (None, one[0]))
    for name in chosen.table or TABLES:
        lines = TABLES[name](chosen.draws) if name in TABLES else coverage(chosen.draws, TUNING, 0)
        lines = coverage(chosen.draws, first=chosen.first, budgets=sized) if name == "coverage" else lines
        for line in lines:
            print(line, flush=True)
        print()


if __name__ == "__main__":
    main()
