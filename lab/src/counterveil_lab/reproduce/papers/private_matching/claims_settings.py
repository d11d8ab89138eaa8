"""What the text says of limits, coefficients, the split of the budget and guarantees, judged."""

from __future__ import annotations

import numpy as np
import pandas as pd

from counterveil_lab.attacks.gallery import Claimed
from counterveil_lab.attacks.refuted_papers import papers
from counterveil_lab.reproduce.papers.private_matching.methods import CLEAR, geometric
from counterveil_lab.reproduce.protocol import Claim, Judge, Judged, Tables

# A limit does not suit a study where its error is so many times the best one.
_FAILS = 2.0
ADAPTIVE, SMALL, LARGE = "adaptive limit", "limit 1", "limit 50"
_POINT = ["neighbours", "data", "epsilon"]


def _limits(tables: Tables, figures: tuple[str, ...]) -> pd.DataFrame:
    whole = pd.concat([tables[name] for name in figures])
    return whole.pivot_table(index=_POINT, columns="limit", values="error", sort=False).reset_index()


def adaptive_is_good(figures: tuple[str, ...]) -> Judge:
    """Return what decides whether the adaptive limit is nearly as good as the best fixed one at most points."""

    def judge(tables: Tables) -> Judged:
        found = _limits(tables, figures)
        fixed = found[[name for name in found.columns if str(name).startswith("limit")]]
        near = int((found[ADAPTIVE] <= CLEAR * fixed.min(axis=1)).sum())
        alone = {name: int((fixed[name] <= CLEAR * fixed.min(axis=1)).sum()) for name in fixed.columns}
        why = f"within a quarter of the best fixed limit; of the fixed ones {_counts(alone)}"
        return Judged.of(near > len(found) / 2, f"{near} of {len(found)} points", why)

    return judge


def _counts(named: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in named.items())


def no_fixed_limit(tables: Tables) -> Judged:
    """Judge whether every fixed limit fails on some study at label level."""
    found = _limits(tables, ("figure-3",))
    fixed = found[[name for name in found.columns if str(name).startswith("limit")]]
    worst = {name: float((fixed[name] / fixed.min(axis=1)).max()) for name in fixed.columns}
    number = ", ".join(f"{name} {value:.1f}" for name, value in worst.items())
    return Judged.of(
        min(worst.values()) > _FAILS,
        number,
        f"largest error beside the best fixed limit at the same point; {_FAILS:g} times it does not suit",
    )


def small_limit_flat(tables: Tables) -> Judged:
    """Judge whether the error of limit 1 hardly falls with the budget, and that of the adaptive limit does."""
    found = _limits(tables, ("figure-3",))
    first, last = (
        found[found["epsilon"] == end].set_index("data")
        for end in (found["epsilon"].min(), found["epsilon"].max())
    )
    small, own = geometric(last[SMALL] / first[SMALL]), geometric(last[ADAPTIVE] / first[ADAPTIVE])
    number = f"from the least to the largest budget: limit 1 times {small:.2f}, adaptive times {own:.2f}"
    return Judged.of(small > 0.5 and own < small, number, "geometric mean over studies")


def large_limit_pays_late(tables: Tables) -> Judged:
    """Judge whether limit 50 loses to limit 1 at the smallest budget and gains on it at the largest."""
    found = _limits(tables, ("figure-3",))
    ratios = [
        geometric(part[LARGE] / part[SMALL])
        for end in (found["epsilon"].min(), found["epsilon"].max())
        for part in (found[found["epsilon"] == end],)
    ]
    number = f"limit 50 over limit 1: {ratios[0]:.1f} at the least, {ratios[1]:.1f} at the largest budget"
    return Judged.of(ratios[0] > 1 > ratios[1], number, "geometric mean over studies")


def large_limit_worse(tables: Tables) -> Judged:
    """Judge whether limit 50 is clearly worse than limit 1 at sample level."""
    found = _limits(tables, ("figure-5", "figure-10"))
    worse = int((found[LARGE] > CLEAR * found[SMALL]).sum())
    return Judged.of(worse > len(found) / 2, f"{worse} of {len(found)} points", "by more than a quarter")


def _coefficients(tables: Tables, figures: tuple[str, ...]) -> pd.DataFrame:
    whole = pd.concat([tables[name] for name in figures])
    return whole.pivot_table(index=_POINT, columns="coefficient", values="error", sort=False)


def coefficient_is_good(figures: tuple[str, ...], value: float) -> Judge:
    """Return what decides whether the chosen coefficient is nearly the best at most points."""

    def judge(tables: Tables) -> Judged:
        found = _coefficients(tables, figures)
        counts = {
            float(name): int((found[name] <= CLEAR * found.min(axis=1)).sum()) for name in found.columns
        }
        near = counts[value]
        why = "within a quarter of the best: " + ", ".join(
            f"{name:g} {count}" for name, count in counts.items()
        )
        return Judged.of(near > len(found) / 2, f"{near} of {len(found)} points", why)

    return judge


def best_coefficient_differs(tables: Tables) -> Judged:
    """Judge whether the best c depends on study and budget: values that are ahead of all others by a clear lead."""
    found = _coefficients(tables, ("figure-4",))
    sizes = np.sort(found.to_numpy(), axis=1)
    best = found.idxmin(axis=1)[sizes[:, 1] > CLEAR * sizes[:, 0]]
    # One value that is nearly the best everywhere contradicts the claim.
    everywhere = bool((found.le(CLEAR * found.min(axis=1), axis=0)).all().any())
    number = f"{best.nunique()} values of c are ahead of all others by a quarter somewhere"
    why = ", ".join(f"{value:g}: {count}" for value, count in best.value_counts().items())
    return Judged.of(
        True if best.nunique() > 1 else False if everywhere else None,
        number,
        f"points of {len(found)}: {why}" if why else f"at none of {len(found)} points",
    )


def larger_h_worse(tables: Tables) -> Judged:
    """Judge whether the largest h errs more than the smallest."""
    found = _coefficients(tables, ("figure-6", "figure-11"))
    first, last = found.columns[0], found.columns[-1]
    worse = int((found[last] > found[first]).sum())
    return Judged.of(
        worse > 0.75 * len(found), f"{worse} of {len(found)} points", f"h = {last:g} beside {first:g}"
    )


def treatments_need_budget(tables: Tables) -> Judged:
    """Judge whether a small share for the treatments has large errors."""
    table = tables["figure-12"]
    means = table.groupby("second")["error"].mean()
    ends = [f"{means.iloc[place]:.2f} at a share of {means.index[place]:g}" for place in (0, -1)]
    number = f"mean error {ends[0]}, {ends[1]}"
    return Judged.of(
        bool(means.iloc[0] > CLEAR * means.iloc[-1]),
        number,
        "mean over studies, budgets and other shares",
    )


def chosen_split(tables: Tables) -> Judged:
    """Judge whether 0.1 : 0.7 : 0.2 is nearly the best split everywhere."""
    table = tables["figure-12"]
    best = table.groupby(["data", "epsilon"])["error"].min()
    own = table[np.isclose(table["first"], 0.1) & np.isclose(table["second"], 0.7)].set_index(
        ["data", "epsilon"]
    )
    ratio = (own["error"] / best).dropna()
    near = int((ratio <= 1.5).sum())
    return Judged.of(
        near > 0.75 * len(ratio), f"{near} of {len(ratio)} maps", "within half of the best of the map"
    )


# Guarantees.


def label_guarantee(tables: Tables) -> Judged:
    """Judge Theorem 1 by the counterexample of the gallery and by the losses on the paper's studies."""
    entry = next(one for one in papers() if one.name == "capacity matching")
    finding = entry.examine()
    table = pd.concat([tables["figure-3"], tables["figure-8"]])
    ratio = table["true_epsilon"] / table["epsilon"]
    broken = table[ratio > 1 + 1e-6]
    own = broken[broken["limit"] == ADAPTIVE]
    number = (
        f"{Claimed(entry, finding).found}; on the paper's studies up to {ratio.max():.2f} times the claim"
    )
    why = f"{entry.fails}; so it is at {len(broken)} of {len(table)} points of both figures, {len(own)} adaptive"
    return Judged.of(not finding.violated and broken.empty, number, why)


def sample_guarantee(tables: Tables) -> Judged:
    """Judge Theorem 2 by the losses of the last step on the paper's studies."""
    table = pd.concat([tables["figure-5"], tables["figure-10"]])
    ratio = table["true_epsilon"] / table["epsilon"]
    broken = table[ratio > 1 + 1e-6]
    own = broken[broken["limit"] == ADAPTIVE]
    why = (
        f"judged for replacing a person: epsilon is exceeded at {len(broken)} of {len(table)} points of both figures, "
        f"{len(own)} adaptive; the theorem is for adding or removing one, which the number of released scores tells"
    )
    number = f"the last step loses up to {ratio.max():.2f} times epsilon on the paper's studies"
    return Judged.of(broken.empty, number, why)


def _of(*numbers: int) -> tuple[str, ...]:
    return tuple(f"figure-{number}" for number in numbers)


CLAIMS = (
    Claim(
        "At label level no fixed limit suits all data sets and budgets.",
        "Section IV-C, Figure 3",
        _of(3),
        no_fixed_limit,
    ),
    Claim(
        "At label level the adaptive limit does well nearly everywhere.",
        "Section IV-C, Figures 3 and 8",
        _of(3, 8),
        adaptive_is_good(_of(3, 8)),
    ),
    Claim(
        "With a small fixed limit the error hardly falls with epsilon; with the adaptive one it does.",
        "Section IV-C, Figure 3",
        _of(3),
        small_limit_flat,
    ),
    Claim(
        "A large limit costs at small budgets and pays at large ones.",
        "Section IV-C, Figure 3",
        _of(3),
        large_limit_pays_late,
    ),
    Claim(
        "c = 0.01 does well on all data sets and budgets.",
        "Section IV-C, Figures 4 and 9",
        _of(4, 9),
        coefficient_is_good(_of(4, 9), 0.01),
    ),
    Claim(
        "The best c differs between data sets and budgets.",
        "Section IV-C, Figure 4",
        _of(4),
        best_coefficient_differs,
    ),
    Claim(
        "At sample level a large fixed limit has far larger errors than a small one.",
        "Section IV-D, Figures 5 and 10",
        _of(5, 10),
        large_limit_worse,
    ),
    Claim(
        "At sample level the adaptive limit does well.",
        "Section IV-D, Figures 5 and 10",
        _of(5, 10),
        adaptive_is_good(_of(5, 10)),
    ),
    Claim("A larger h has larger errors.", "Section IV-D, Figures 6 and 11", _of(6, 11), larger_h_worse),
    Claim(
        "h = 0.001 does well.",
        "Section IV-D, Figures 6 and 11",
        _of(6, 11),
        coefficient_is_good(_of(6, 11), 0.001),
    ),
    Claim(
        "A small share of epsilon for the treatments has large errors.",
        "Appendix I, Figure 12",
        _of(12),
        treatments_need_budget,
    ),
    Claim(
        "The split 0.1 : 0.7 : 0.2 has low errors on all data sets and budgets.",
        "Appendix I, Figure 12",
        _of(12),
        chosen_split,
    ),
    Claim(
        "Label level satisfies epsilon-label differential privacy.", "Theorem 1", _of(3, 8), label_guarantee
    ),
    Claim("Sample level satisfies epsilon-differential privacy.", "Theorem 2", _of(5, 10), sample_guarantee),
)
