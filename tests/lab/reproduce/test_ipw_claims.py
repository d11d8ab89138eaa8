"""The claims of the paper on weighting: each is reproduced on tables that obey it, and not on others."""

from dataclasses import replace

import pandas as pd
import pytest

from counterveil_lab.attacks.refuted_papers import papers
from counterveil_lab.reproduce.papers.ipw import claims
from counterveil_lab.reproduce.papers.ipw.forms import LONG, PARTLY, PLAIN, RELEASED
from counterveil_lab.reproduce.papers.ipw.tables import EPSILONS, MEAN, PRINTED, made_table
from counterveil_lab.reproduce.protocol import Verdict

FALLING, FLAT = (0.5, 0.4, 0.3, 0.2, 0.1), (0.5,) * 5
RUNS = 100


def table_of(family, partly=FALLING, released=FALLING, exploded=False):
    """Return a table of a hundred runs by the shares of wrong signs; the means follow from them."""
    name = "table-2" if family == "ihdp" else "table-3"
    rows = []
    for place, epsilon in enumerate(EPSILONS):
        for run in range(RUNS):
            own = -1.0 if run < RUNS * partly[place] else 1.0
            values = {PLAIN: 1.0, PARTLY: own * (1e4 if exploded and not place else 1)}
            values |= {RELEASED: -1.0 if run < RUNS * released[place] else 1.0, LONG: own}
            rows.append(
                {"data": family, "first_run": 0, "runs": RUNS, "run": run, "epsilon": epsilon, **values}
            )
    return {name: made_table(pd.DataFrame(rows))}


def printed(family):
    return PRINTED[family][PARTLY, "wrong signs"]


def bias(sign, turned=False):
    rows = [
        {
            "form": form,
            "rows": size,
            "epsilon": epsilon,
            "bias": (factor / (epsilon * size)) ** (1 - 2 * turned),
        }
        for form, factor in (("as printed", sign), ("as derived", 1.0), ("simulated", 1.0))
        for size in (500, 1000)
        for epsilon in (0.2, 0.4)
    ]
    return {"figure-1": pd.DataFrame(rows)}


def signs(first, last, larger=0.0, trials=RUNS):
    """Return shares of wrong signs by budget, those of the larger effect apart."""
    rows = [
        {"effect": effect, "epsilon": epsilon, "estimate": name, "wrong": share, "trials": trials}
        for effect in (0.1, 2.0)
        for name in (PARTLY, RELEASED)
        for epsilon, share in (
            (0.2, first if effect == 0.1 else larger),
            (0.99, last if effect == 0.1 else larger),
        )
    ]
    return {"figure-2ab": pd.DataFrame(rows)}


def means(partly, released=(0.4, 0.4), slope=1.0):
    """Return mean estimates by rows: their distances to those without noise at effect 2, and their slope in it."""
    rows = [
        {"effect": effect, "rows": size, "estimate": name, "mean": slope * effect + off, "half": 0.5}
        for effect in (0.1, 2.0)
        for place, size in enumerate((500, 2500))
        for name, off in ((PLAIN, 0.0), (PARTLY, partly[place]), (RELEASED, released[place]))
    ]
    return {"figure-2cd": pd.DataFrame(rows)}


def treated(found):
    return {"appendix-f": pd.DataFrame([{"printed": found, "effect": 2.0, "share": 0.5}])}


CASES = {
    "falls with m and with epsilon": (bias(1.0), bias(1.0, turned=True)),
    "Equation 8": (bias(1.0), bias(-1.0)),
    "Before the last noise, wrong signs become": (signs(0.5, 0.1), signs(0.3, 0.4)),
    "Released, wrong signs become": (signs(0.5, 0.1), signs(0.3, 0.4)),
    "as the effect grows": (signs(0.4, 0.4, larger=0.1), signs(0.4, 0.4, larger=0.35)),
    "converge to the one": (means((0.4, 0.1)), means((0.4, 0.3))),
    "exponentially larger": (means((0.4, 0.1), slope=20.0), means((0.4, 0.1))),
    "Before the last noise, wrong signs on IHDP": (table_of("ihdp"), table_of("ihdp", partly=FALLING[::-1])),
    "Released, wrong signs on IHDP": (table_of("ihdp"), table_of("ihdp", released=FALLING[::-1])),
    "wrong signs on IHDP before": (table_of("ihdp", partly=printed("ihdp")), table_of("ihdp", partly=FLAT)),
    "Means on IHDP": (table_of("ihdp"), table_of("ihdp", partly=FLAT)),
    "is unreliable": (table_of("ihdp", exploded=True, partly=(0.9, 0, 0, 0, 0)), table_of("ihdp")),
    "On IHDP the last": (table_of("ihdp"), table_of("ihdp", released=FLAT)),
    "Before the last noise, wrong signs on LaLonde": (
        table_of("lalonde"),
        table_of("lalonde", FALLING[::-1]),
    ),
    "Released, wrong signs on LaLonde": (table_of("lalonde"), table_of("lalonde", released=FALLING[::-1])),
    "wrong signs on LaLonde before": (table_of("lalonde", printed("lalonde")), table_of("lalonde")),
    "Means on LaLonde": (table_of("lalonde"), table_of("lalonde", FLAT)),
    "On LaLonde the last": (table_of("lalonde"), table_of("lalonde", released=FLAT)),
    "forms of Appendix F": (treated(2.0), treated(1.0)),
}
TABLED = {claim.says: claim for claim in claims.CLAIMS if claim.figures}


@pytest.mark.parametrize("words", CASES)
def test_a_claim_is_judged_both_ways(words):
    (claim,) = [one for says, one in TABLED.items() if words in says]
    right, wrong = (claim.judge(tables) for tables in CASES[words])
    assert (right.verdict, wrong.verdict) == (Verdict.REPRODUCED, Verdict.NOT_REPRODUCED)
    assert right.number != wrong.number


def test_no_claim_is_left_out():
    assert len(CASES) == len(TABLED) == len(claims.CLAIMS) - 2
    assert all(sum(words in says for words in CASES) == 1 for says in TABLED)


def test_a_fall_that_chance_may_decide_cannot_be_checked():
    judge = claims.signs_by_budget(RELEASED)
    assert judge(signs(0.46, 0.41)).verdict is Verdict.CANNOT_BE_CHECKED
    # Many trials rule out a fall that matters, or show a small one.
    assert judge(signs(0.46, 0.45, trials=2000)).verdict is Verdict.NOT_REPRODUCED
    assert judge(signs(0.46, 0.41, trials=2000)).verdict is Verdict.REPRODUCED
    shares = (0.5, 0.48, 0.47, 0.46, 0.45)
    assert (
        claims.fewer_wrong("table-3", PARTLY)(table_of("lalonde", shares)).verdict
        is Verdict.CANNOT_BE_CHECKED
    )


def test_means_after_the_last_noise_decide_nothing():
    growing = means((0.4, 0.1), released=(0.1, 0.4))
    assert claims.converges(growing).verdict is Verdict.REPRODUCED


def test_tables_have_the_printed_figures_first_and_say_how_many_runs_they_have():
    table = table_of("lalonde")["table-3"]
    first = table.iloc[0]
    assert (first["measure"], first["0.2"], first["runs"]) == (MEAN, 872.21, 1000)
    assert set(table["runs"]) == {1000, RUNS}


def test_the_guarantee_is_judged_by_its_counterexample(monkeypatch):
    assert claims.guarantee({}).verdict is Verdict.NOT_REPRODUCED
    entry = next(one for one in papers() if one.name == "unclipped weighting")
    harmless = replace(entry, pair=(entry.pair[0], entry.pair[0]))
    monkeypatch.setattr(claims, "papers", lambda: [harmless])
    assert claims.guarantee({}).verdict is Verdict.REPRODUCED


def test_the_bound_on_wrong_signs_is_told_from_a_smaller_one():
    assert claims.sign_bound(2)({}).verdict is Verdict.REPRODUCED
    assert claims.sign_bound(4)({}).verdict is Verdict.NOT_REPRODUCED
