"""The claims of the paper on several sites: each holds on tables made as the paper says, and fails on others."""

import numpy as np
import pandas as pd
import pytest

from counterveil_lab.reproduce.papers.multi_site import PAPER, claims_privacy
from counterveil_lab.reproduce.papers.multi_site.errors import AGGREGATIONS, ALPHA_NAMES, MEASURES, OUTSIDE
from counterveil_lab.reproduce.papers.multi_site.judging import every, leads, majority
from counterveil_lab.reproduce.papers.multi_site.panels import PANELS
from counterveil_lab.reproduce.papers.multi_site.sensitivities import MEASURES as BOUNDS
from counterveil_lab.reproduce.papers.multi_site.sensitivities import SIZES, SLOPES
from counterveil_lab.reproduce.protocol import Verdict

BASE = np.array([1, 0.9, 0.8, 0.7, 0.3, 0.2, 0.1])
SCALES = {"published": 1e-3, "ours": 1e-3, "published, global": 1.0, "published, smooth": 0.3}


def as_printed(panel, method, way):
    """Return errors by alpha that obey every sentence of the paper."""
    found = SCALES[method] * BASE
    if way == "AggAll":
        found = found * np.array([3, 2, 1.5, 1.3, 3, 3, 3] if panel.figure > 7 else [3, 2] + 5 * [1.5])
        found[0] *= 2 if panel.sizes == (18, 1, 1) else 1
    if way == "AggLargest":
        found = np.full(7, found[0] * (2.2 if panel.cut == "1:1:1" and panel.figure == 4 else 1.5))
    if way == "IVW":
        ratio = {3: [1.8, 1.1, 1.1, 1.1, 1.1, 1.1, 1.1], 4: [0.95] * 7, 5: [0.7, 0.7, 0.7, 1, 1.3, 1.3, 1.3]}
        found = found * ratio.get(panel.figure, [1.2, 1.1, 1, 0.85, 0.95, 0.95, 0.95])
    return found


def lines_of(panel, change):
    methods = (
        ("published, global", "published, smooth", "ours") if panel.figure > 7 else ("published", "ours")
    )
    known = [(method, way) for method in methods for way in AGGREGATIONS]
    for method, way in [
        *known,
        ("difference in means", "MVAgg"),
        ("without privacy", "AggAll"),
        ("zero", "-"),
    ]:
        for measure in MEASURES:
            values = np.zeros(7) if measure == OUTSIDE else np.full(7, 0.5)
            if (method, way) in known and measure != OUTSIDE:
                # Standard deviations are the same, but MVAgg's are the smallest.
                values = as_printed(panel, method, way) * (
                    0.8 if (way, measure) == ("MVAgg", MEASURES[1]) else 1
                )
            values = change(panel, method, way, measure, values.copy())
            key = {
                "study": panel.study,
                "sites": panel.cut,
                "measure": measure,
                "method": method,
                "pooled_by": way,
            }
            yield key | dict(zip(ALPHA_NAMES.values(), values, strict=True)) | {"repetitions": 100}


def bounds(people, slopes, values):
    noise = dict(zip(BOUNDS[1:], (0.5, 8**0.5, 2**0.5, 0.1), strict=True))
    return pd.DataFrame(
        [
            {"people": n, "slope": slope, BOUNDS[0]: s}
            | {name: factor * (s if name != BOUNDS[3] else 1) for name, factor in noise.items()}
            for n, slope, s in zip(people, slopes, values, strict=True)
        ]
    )


def tables(change=lambda panel, method, way, measure, values: values, by_size=None, by_slope=None):
    found = {}
    for number in sorted({panel.figure for panel in PANELS}):
        rows = [row for panel in PANELS if panel.figure == number for row in lines_of(panel, change)]
        found[f"figure-{number}"] = pd.DataFrame(rows)
    sizes = np.array(SIZES, dtype=float)
    found["figure-6"] = bounds(SIZES, ["0"] * len(SIZES), 60 / sizes if by_size is None else by_size)
    grown = 0.01 * (1 + np.array(SLOPES)) if by_slope is None else by_slope
    found["figure-7"] = bounds([10_000] * len(SLOPES), [f"{s:g}" for s in SLOPES], grown)
    return found


def times(factor, ways=("MVAgg",), methods=None, figures=None, measures=MEASURES[:2]):
    """Return a change that multiplies some lines by a number or by one number for each alpha."""

    def change(panel, method, way, measure, values):
        hit = way in ways and measure in measures and (methods is None or method in methods)
        return values * factor if hit and (figures is None or panel.figure in figures) else values

    return change


def at(place, factor):
    found = np.ones(7)
    found[place] = factor
    return found


def swapped(one, other):
    """Return a change that gives panels of one cut the gap of another."""

    def change(panel, method, way, measure, values):
        hit = panel.cut in (one, other) and method == "published" and way in ("AggAll", "AggLargest")
        return values * (2 if panel.cut == other else 0.5) if hit else values

    return change


def outside(panel, method, way, measure, values):
    return values + 0.01 if measure == OUTSIDE and way == "MVAgg" else values


SMOOTH = ("published, smooth",)
BROKEN = {
    "no way of pooling gets worse": tables(times(at(6, 5.0))),
    "MVAgg's error matches the best": tables(times(2.0, figures=(3,))),
    "MVAgg's standard deviations are mostly": tables(times(2.0, figures=(3,))),
    "AggAll is the worst": tables(times(0.1, ("AggAll",))),
    "AggLargest falls behind": tables(times(BASE, ("AggLargest",))),
    "IVW is about as good as MVAgg": tables(times(at(6, 4.0), ("IVW",))),
    "MVAgg and IVW beat AggAll and AggLargest in most": tables(times(2.0, figures=(4,))),
    "MVAgg and AggLargest is largest": tables(swapped("1:1:1", "3:2:1")),
    "MVAgg and AggAll at small alpha is largest": tables(swapped("18:1:1", "3:2:1")),
    "IVW is generally a little better": tables(times(1.2, ("IVW",))),
    "MVAgg is the best for large": tables(times(2.0)),
    "IVW beats MVAgg for alpha below": tables(times(2.0, ("IVW",))),
    "MVAgg is better than AggAll": tables(times(at(5, 2.0))),
    "beat AggAll and AggLargest in general": tables(times(9.0)),
    "MVAgg is the best for small alpha": tables(times(at(0, 0.5), ("IVW",))),
    "as small as IVW's": tables(times(at(6, 9.0))),
    "larger errors than the trials": tables(times(900.0, methods=("published",))),
    "larger in matching than in trials": tables(times(5e3, ("AggAll",), ("published",))),
    "much better than GlobalDPMatching": tables(times(2.0, methods=SMOOTH)),
    "can be 1 or more": tables(times(0.5, methods=("published, global",))),
    "errors below 1 in all cases": tables(times(at(0, 4.0), ("IVW",), SMOOTH)),
    "about 0.1 or less": tables(times(at(6, 5.0), methods=SMOOTH)),
    "never gives an impossible effect": tables(outside),
    "best to combine sites": tables(times(at(0, 0.1), ("AggAll",))),
    "falls about as 1/N": tables(by_size=np.array(SIZES, dtype=float) ** -0.5),
    "grows with imbalance": tables(by_slope=np.full(len(SLOPES), 0.01)),
    "below the global one": tables(by_slope=0.3 * (1 + np.array(SLOPES))),
    "advantage of smooth over global": tables(by_slope=0.01 * (9 - np.array(SLOPES))),
}
TABLED = {claim.says: claim for claim in PAPER.claims if claim.figures}


@pytest.mark.parametrize("says", TABLED)
def test_a_claim_is_reproduced_on_tables_that_obey_it(says):
    assert TABLED[says].judge(AS_PRINTED).verdict is Verdict.REPRODUCED


@pytest.mark.parametrize("words", BROKEN)
def test_a_claim_is_not_reproduced_on_tables_that_contradict_it(words):
    (claim,) = [claim for says, claim in TABLED.items() if words in says]
    found = claim.judge(BROKEN[words])
    assert found.verdict is Verdict.NOT_REPRODUCED
    assert found.number
    assert found.why


LEADS = ("are mostly", "AggAll is the worst", "relatively worse", "in most cases", "AggLargest is largest",
         "small alpha is largest", "a little better", "MVAgg is the best for large", "IVW beats MVAgg",
         "better than AggAll", "in general", "best to combine")  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_no_lead_is_found_among_ways_of_pooling_that_differ_by_chance_alone(seed):
    rng = np.random.default_rng(seed)

    def alike(panel, method, way, measure, values):
        return SCALES.get(method, 1) * BASE * rng.normal(1, 0.1, 7)

    found = tables(alike)
    judged = {
        says: claim.judge(found).verdict for says, claim in TABLED.items() if any(w in says for w in LEADS)
    }
    assert len(judged) == len(LEADS)
    assert Verdict.REPRODUCED not in judged.values()


def test_every_claim_about_tables_is_contradicted_by_some():
    assert all(sum(words in says for words in BROKEN) == 1 for says in TABLED)
    assert len(BROKEN) == len(TABLED)


AS_PRINTED = tables()
# Claims that no table decides: what holds of them is counted on small data, the others have counterexamples.
WITHOUT = [
    ("at least B", Verdict.REPRODUCED),
    ("local sensitivity holds", Verdict.REPRODUCED),
    ("SmoothDPMatching keeps", Verdict.NOT_REPRODUCED),
    ("release of ln S keeps", Verdict.NOT_REPRODUCED),
    ("unbiased", Verdict.REPRODUCED),
]


@pytest.mark.parametrize(("words", "verdict"), WITHOUT)
def test_claims_about_bounds_and_guarantees(words, verdict):
    (claim,) = [claim for claim in PAPER.claims if not claim.figures and words in claim.says]
    assert claim.judge({}).verdict is verdict


def test_parallel_composition_needs_neighbours_in_the_same_arm():
    same, other = [claim for claim in PAPER.claims if "parallel composition" in claim.says]
    assert (same.judge({}).verdict, other.judge({}).verdict) == (Verdict.REPRODUCED, Verdict.NOT_REPRODUCED)


def test_a_bound_that_is_too_small_is_noticed(monkeypatch):
    monkeypatch.setattr(claims_privacy, "printed_smooth_change", lambda counts, beta: 0.5)
    (claim,) = [claim for claim in PAPER.claims if claim.where == "Theorem 1"]
    assert claim.judge({}).verdict is Verdict.NOT_REPRODUCED


def test_the_page_says_what_ours_comes_to():
    text = PAPER.remarks(AS_PRINTED)
    assert "in numbers 4 and 5" in text.replace("\n", " ")
    assert "| 9 | Synth | 18:1:1 |" in text
    assert "- **Matching**: the published error is 300.0 to 300 times ours" in text
    assert "figure-3" not in PAPER.remarks({})


@pytest.mark.parametrize(
    ("ratio", "need", "verdict"),
    [
        ([0.5, 0.5, 1, 1, 1, 1, 1], majority, True),
        ([0.5, 0.9, 1, 1], every, None),
        ([0.5, 1.5, 1, 1], every, False),
        ([1.0, 1.0], majority, None),
    ],
)
def test_places_where_two_ways_of_pooling_give_one_answer_decide_nothing(ratio, need, verdict):
    assert leads(np.array(ratio), need) is verdict
