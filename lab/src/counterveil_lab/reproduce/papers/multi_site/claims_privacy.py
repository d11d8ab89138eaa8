"""What the paper says of sensitivities and guarantees (Figures 6 and 7, Theorem 1, Lemma 1), judged."""

from __future__ import annotations

from itertools import combinations_with_replacement, product

import numpy as np

from counterveil.published.strata import printed_log_sd, printed_smooth_change, printed_smoothness
from counterveil.published.strata_sensitivity import StratumCounts, local_change
from counterveil_lab.attacks.gallery import Claimed
from counterveil_lab.attacks.refuted_papers import papers
from counterveil_lab.reproduce.papers.multi_site.panels import Rows
from counterveil_lab.reproduce.papers.multi_site.published_sites import Matching
from counterveil_lab.reproduce.papers.multi_site.sensitivities import BALANCED, DELTA
from counterveil_lab.reproduce.protocol import Claim, Judged, Tables

# A power of N is close to -1 within this much.
_NEAR = 0.25
# So steep that no table farther away than 0 replacements counts: the smooth bound is the local one.
_STEEP = 50.0
_SMALL = 5


def _one_over_n(tables: Tables) -> Judged:
    own = tables["figure-6"]
    own = own[own["slope"] == BALANCED]
    size, bound = own["people"].to_numpy(float), own["printed S"].to_numpy(float)
    powers = np.diff(np.log(bound)) / np.diff(np.log(size))
    near = np.abs(powers + 1) <= _NEAR
    number = f"N S is {bound[0] * size[0]:.0f} at N = {size[0]:,.0f}, {(bound * size).max():.0f} at most, "
    number += f"{bound[-1] * size[-1]:.0f} at {size[-1]:,.0f}"
    why = f"the power of N is near -1 in {int(near.sum())} of {near.size} steps: from 500 people a stratum on"
    return Judged.of(bool(near.all()), number, why)


def _grows_with_imbalance(tables: Tables) -> Judged:
    own = tables["figure-7"]
    bound = own["printed S"].to_numpy(float)
    number = ", ".join(f"{value:.2g}" for value in bound)
    holds = bool((np.diff(bound) > 0).all())
    return Judged.of(holds, number, f"printed S at slopes {', '.join(map(str, own['slope']))}")


def _below_global(tables: Tables) -> Judged:
    largest = float(tables["figure-7"]["printed S"].max())
    return Judged.of(
        largest < 1, f"at most {largest:.2g}", "10,000 people, slopes up to 5; the global one is 1 + 1/N"
    )


def _advantage(tables: Tables) -> Judged:
    own = tables["figure-7"]
    ratio = (own["noise SD, printed global"] / own["noise SD, printed smooth"]).to_numpy(float)
    number = (
        f"global noise is {ratio[0]:.0f} times the smooth noise for balanced data, {ratio[-1]:.0f} at slope 5"
    )
    return Judged.of(bool(ratio[0] > ratio[-1]), number, "anticipated there, shown in no figure")


def _gallery(name: str) -> Judged:
    """Return what the auditor finds on the counterexample that the gallery keeps under this name."""
    entry = next(one for one in papers() if one.name == name)
    finding = entry.examine()
    return Judged.of(not finding.violated, Claimed(entry, finding).found, entry.fails)


def _unbiased(_: Tables) -> Judged:
    sd = printed_log_sd(printed_smoothness(1 / 3, DELTA / 3), 1 / 3, DELTA / 3)
    at, weight = np.polynomial.hermite_e.hermegauss(60)
    mean = float((weight * np.exp(sd * at - sd**2 / 2)).sum() / weight.sum())
    return Judged.of(
        abs(mean - 1) < 1e-9,
        f"mean of the factor on S: {mean:.6f}",
        "a log-normal of log SD s has the mean e^(s^2/2)",
    )


def _global_at_least(_: Tables) -> Judged:
    def moved(people: int) -> float:
        outcome = np.append(np.ones(people - 1), 0.0)
        place, alone = np.zeros(people, dtype=np.int64), np.append(np.zeros(people - 1, dtype=np.int64), 1)
        one, all_treated = np.arange(people) < people - 1, np.ones(people, dtype=bool)
        before = Matching(Rows({}, outcome, one, place), 2).effect
        return abs(before - Matching(Rows({}, outcome, all_treated, alone), 2).effect)

    found = min(moved(people) for people in (2, 3, 10))
    why = "the pair of the proof; from three people on the largest change is B (1 + 1/N), and noise for B too small"
    return Judged.of(found >= 1, f"{found:g} B", why)


def _local_bound(_: Tables) -> Judged:
    cells = [cell for cell in product(range(_SMALL + 1), repeat=2) if sum(cell)]
    worst = np.inf
    for pair in combinations_with_replacement(cells, 2):
        counts = StratumCounts.of(np.array([c[0] for c in pair]), np.array([c[1] for c in pair]), 2)
        proved = local_change(counts, "ATE", "single")
        if proved > 0:
            worst = min(worst, printed_smooth_change(counts, _STEEP) / proved)
    number = f"printed / proved bound at least {worst:.2f}"
    return Judged.of(worst >= 1, number, f"all tables of two strata with up to {_SMALL} people in each cell")


def _largest_loss(treatment_may_change: bool, people: int = 3) -> float:
    """Return the largest log ratio of the noisy sums by arm, in epsilons, over all neighbours of so many people."""
    values = tuple(product((0, 1), (0, 1)))  # treatment and outcome

    def sums(rows: tuple[tuple[int, int], ...]) -> tuple[int, int]:
        return sum(y for t, y in rows if t), sum(y for t, y in rows if not t)

    losses = [0]
    for rows in product(values, repeat=people):
        for other in values:
            if treatment_may_change or other[0] == rows[0][0]:
                before, after = sums(rows), sums((other, *rows[1:]))
                losses.append(sum(abs(x - y) for x, y in zip(before, after, strict=True)))
    return float(max(losses))


def _same_arm(_: Tables) -> Judged:
    loss = _largest_loss(treatment_may_change=False)
    why = "one person's outcome enters the sum of one arm, which moves by B at most"
    return Judged.of(loss <= 1, f"log ratio at most {loss:g} epsilon", why)


def _other_arm(_: Tables) -> Judged:
    loss = _largest_loss(treatment_may_change=True)
    why = "there a neighbour may differ in treatment too: both sums move by B, so the parts are not disjoint"
    return Judged.of(loss <= 1, f"log ratio up to {loss:g} epsilon", why)


_FIGURES = "Section IV-B2 (preprint 4.2.2)"
CLAIMS = (
    Claim(
        "Smooth sensitivity falls about as 1/N for balanced data.",
        f"{_FIGURES}, Figure 6",
        ("figure-6",),
        _one_over_n,
    ),
    Claim(
        "It grows with imbalance and is smallest for balanced data.",
        f"{_FIGURES}, Figure 7",
        ("figure-7",),
        _grows_with_imbalance,
    ),
    Claim(
        "It is below the global one, about 1, even for imbalanced data.",
        f"{_FIGURES}, Figure 7",
        ("figure-7",),
        _below_global,
    ),
    Claim(
        "The advantage of smooth over global noise is larger for balanced data.",
        "Section IV-C (preprint 4.3)",
        ("figure-7",),
        _advantage,
    ),
    Claim("The global sensitivity of matching is at least B.", "Proposition 1", (), _global_at_least),
    Claim("The printed bound on the local sensitivity holds.", "Theorem 1", (), _local_bound),
    Claim(
        "SmoothDPMatching keeps (epsilon, delta).",
        "Algorithm 2, Section II-A (preprint 2.1)",
        (),
        lambda _: _gallery("smooth sensitivity that is not smooth"),
    ),
    Claim(
        "The release of ln S keeps (epsilon, delta).",
        "Lemma 1",
        (),
        lambda _: _gallery("release of the smooth sensitivity"),
    ),
    Claim("The released smooth sensitivity is unbiased.", "Lemma 1", (), _unbiased),
    Claim(
        "The private difference in means keeps epsilon, by parallel composition.",
        "Section III-A1 of the published version, where neighbours keep their treatment",
        (),
        _same_arm,
    ),
    Claim(
        "The private difference in means keeps epsilon, by parallel composition.",
        "preprint 3.1.1, where neighbours may differ in treatment",
        (),
        _other_arm,
    ),
)
