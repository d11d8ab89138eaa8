"""Every claim on the paper on effect functions is judged both ways, by tables made for it."""

import pandas as pd
import pytest

from counterveil_lab.reproduce.papers.cate.claims import CLAIMS, rises, small_loss
from counterveil_lab.reproduce.papers.cate.methods import (
    ALPHA,
    BOOSTED,
    CONSTANT,
    FOREST,
    LITERAL,
    NETWORK,
    OURS,
    ZERO,
)
from counterveil_lab.reproduce.papers.cate_designs.paper import BOOSTED as R_LEARNER
from counterveil_lab.reproduce.papers.cate_designs.paper import PAPER as DESIGNS
from counterveil_lab.reproduce.papers.cate_designs.paper import table as designs_table
from counterveil_lab.reproduce.protocol import Verdict


def claim(words):
    found = [one for one in CLAIMS if words in one.says]
    assert len(found) == 1
    return found[0]


def table(**columns):
    """Return a table with a row for each method and epsilon; a column is a number or a function of both."""
    rows = []
    for method in (FOREST, NETWORK, LITERAL, ALPHA, ZERO, CONSTANT, OURS, BOOSTED, "k-anonymous forest",
                   "k-anonymous network"):  # fmt: skip
        for epsilon in (0.1, 1.0, 10.0):
            for place in (0.0, 1.0):
                made = {
                    name: make(method, epsilon) if callable(make) else make for name, make in columns.items()
                }
                rows.append({"method": method, "epsilon": epsilon, "truth": place * 4, "x": place} | made)
    return pd.DataFrame(rows)


def falling(size):
    return lambda method, epsilon: size / epsilon


def guarantees(bound):
    return pd.DataFrame(
        [{"theorem": number, "release": "one", "claimed": 1.0, "bound": bound} for number in (1, 2)]
    )


def sizes(noise, seconds):
    noises = [
        {"measure": "noise", "form": form, "size": size, "value": value}
        for form in ("finite", "literal", "alpha")
        for size, value in zip((100, 1600), noise, strict=True)
    ]
    times = [
        {"measure": "seconds", "form": "Algorithm 1", "size": size, "value": value}
        for size, value in zip((300, 4800), seconds, strict=True)
    ]
    return pd.DataFrame(noises + times)


def answers(mean):
    return pd.DataFrame(
        [{"algorithm": "iterative_printed", "query": place, "fitted": 2.0, "mean": mean} for place in (1, 2)]
    )


def by_method(own, other, *methods):
    return lambda method, epsilon: own if method in methods else other


CASES = [
    ("Answers to finitely", {"guarantees": guarantees(0.9)}, {"guarantees": guarantees(3.0)}),
    ("A released function", {"guarantees": guarantees(0.9)}, {"guarantees": guarantees(3.0)}),
    ("On Dataset 1 predictions", {"figure3": table(noise=falling(1))}, {"figure3": table(noise=2.0)}),
    ("almost identical", {"figure14": table(noise=1.0, floor=0.3)},
     {"figure14": table(noise=1.0, floor=by_method(0.6, 0.3, FOREST))}),
    ("Functional predictions", {"figure4": table(noise=falling(1))}, {"figure4": table(noise=falling(100))}),
    ("precise predictions", {"figure4": table(error=0.5)}, {"figure4": table(error=3.0)}),
    ("finitely many queries fall", {"figure5": table(error=lambda m, e: 1 + 0.1 / e, floor=1.0)},
     {"figure5": table(error=lambda m, e: 2 + 0.1 / e, floor=1.0)}),
    ("behaves as the finite", {"figure5": table(error=falling(1), noise=falling(1))},
     {"figure5": table(error=5.0, noise=1e-13)}),
    ("predictions are correct", {"figure5": table(error=by_method(2.0, 1.0, CONSTANT), clipped=1.0)},
     {"figure5": table(error=by_method(2.0, 1.0, CONSTANT), clipped=8.0)}),
    ("extremely enlarged", {"figure3": table(noise=1.0), "figure9": table(noise=5.0)},
     {"figure3": table(noise=1.0), "figure9": table(noise=1.2)}),
    ("over- or under", {"figure3": table(noise=1.0, shift=0.05), "figure4": table(noise=1.0, shift=0.5)},
     {"figure3": table(noise=1.0, shift=0.05), "figure4": table(noise=1.0, shift=0.06)}),
    ("Iterative queries", {"algorithm2": answers(2.1)}, {"algorithm2": answers(-0.3)}),
    ("The work of", {"sizes": sizes((1, 0.1), (1, 1.1))}, {"sizes": sizes((1, 0.1), (0.01, 2))}),
    ("Noise vanishes", {"sizes": sizes((1, 0.1), (1, 1))}, {"sizes": sizes((1, 0.9), (1, 1))}),
    ("boosted trees", {"figure11": table(error=2.0), "figure12": table(error=1.0)},
     {"figure11": table(error=falling(0.1)), "figure12": table(error=1.0)}),
    ("relative to that", {"figure15": table(relative=falling(100))}, {"figure15": table(relative=100.0)}),
]  # fmt: skip

# Two tables each, and what is unknown.
OPEN = [
    ("approaches its answers", {"figure9": table(noise=1.0), "figure10": table(noise=0.5)},
     {"figure9": table(noise=1.0), "figure10": table(noise=by_method(2.0, 0.5, LITERAL))}, "bandwidth"),
    ("k-anonymisation", {"figure13": table(error=by_method(1.0, 2.0, FOREST, NETWORK))},
     {"figure13": table(error=by_method(3.0, 2.0, FOREST, NETWORK))}, "k"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "right", "wrong"), CASES, ids=[case[0] for case in CASES])
def test_a_claim_is_judged_both_ways(words, right, wrong):
    one = claim(words)
    assert set(one.figures) <= set(right) | set(wrong)
    yes, no = one.judge(right), one.judge(wrong)
    assert (yes.verdict, no.verdict) == (Verdict.REPRODUCED, Verdict.NOT_REPRODUCED)
    assert yes.number != no.number


def test_the_claim_on_boosted_trees_cannot_be_checked_without_their_package():
    found = claim("boosted trees").judge({"figure12": table(error=1.0)})
    assert found.verdict is Verdict.CANNOT_BE_CHECKED
    assert "interpret" in found.why


def test_claims_that_settings_which_are_not_printed_decide_cannot_be_checked():
    for words, first, second, unknown in OPEN:
        one, other = claim(words).judge(first), claim(words).judge(second)
        assert {one.verdict, other.verdict} == {Verdict.CANNOT_BE_CHECKED}
        assert one.number != other.number
        assert f"{unknown} is not printed" in one.why.replace(", which", "")


def test_no_claim_is_left_out():
    words = [case[0] for case in (*CASES, *OPEN)]
    assert len({claim(each).says for each in words}) == len(words) == len(CLAIMS) - 2


def test_claims_on_medical_data_are_judged_both_ways():
    assert rises(table(middle=1.0).assign(middle=lambda rows: rows["x"]))[0]
    assert not rises(table(middle=1.0).assign(middle=lambda rows: -rows["x"]))[0]
    assert small_loss(table(noise=0.1))[0]
    assert not small_loss(table(noise=2.0))[0]


def test_the_page_of_designs_has_our_errors_beside_the_published_ones_and_claims_nothing():
    methods = {OURS: 0.1, "DP-EBM, published": 0.5, "ours, epsilon 1000": 0.05, CONSTANT: 0.8, R_LEARNER: 2.0}
    rows = [
        {"design": design, "method": name, "error": error * (1 + off)}
        for design in "ABCD"
        for name, error in methods.items()
        for off in ((0.0,) if "published" in name else (-0.2, 0.2))
    ]
    kept = designs_table(pd.DataFrame(rows))
    assert set(kept[kept["method"] == "DP-EBM, published"]["studies"]) == {5}
    assert set(kept[kept["method"] == OURS]["studies"]) == {2}
    text = DESIGNS.remarks({"designs": kept})
    assert DESIGNS.claims == ()
    assert (
        "Design B: ours has 0.18 times the least published error (standard error 0.04): 0.1 beside 0.5"
        in text
    )
    assert R_LEARNER in text
    assert "Design" not in DESIGNS.remarks({})
