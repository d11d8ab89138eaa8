"""Paragraphs for papers, and tables that fit a terminal."""

import numpy as np
import pytest

import counterveil as cv
from counterveil.privacy.caveats import BiasBeyond, Caveat, ResidualImbalance, SitesLeftOut, written
from counterveil.report import Cells, full_view, page, report_view, short_view, text_of, write_up
from counterveil.report.caveats import fact_words
from counterveil.report.numbers import rounded
from counterveil.report.text import text_table, wrapped
from counterveil.report.view import interval_sentence, short_caveats

SITES = ["a hospital with quite a long name", "b"]
STUDY = cv.Study("t", "y", (0, 1), {"site": cv.Categories(SITES), "sex": cv.Binary()}, randomised=True)


def people(n=400, seed=0):
    rng = np.random.default_rng(seed)
    t = rng.permutation(n) % 2
    data = {"t": t, "y": np.clip(rng.normal(0.4 + 0.1 * t, 0.2), 0, 1)}
    return data | {"site": rng.choice(SITES, n), "sex": rng.integers(0, 2, n)}


@pytest.fixture(scope="module")
def results():
    asked = {"protects": "outcome", "epsilon": 1}
    one = cv.ate(people(), STUDY, method="difference_in_means", **asked)
    groups = cv.groups(people(), STUDY, by=["site", "sex"], **asked)
    return {"one": one, "groups": groups, "pooled": cv.pool([one, cv.ate(people(seed=1), STUDY, **asked)])}


@pytest.mark.parametrize("name", ["one", "groups", "pooled"])
def test_a_paragraph_holds_promise_price_figures_and_limits(results, name):
    result = results[name]
    said = result.write_up()
    for part in (
        '"t" on "y"',
        "400 rows" if name != "pooled" else "800 rows",
        "satisfies pure differential privacy with epsilon = 1",
        "spent epsilon 1",
        "sampling error and privacy noise together",
        "Not covered: ",
    ):
        assert part in said
    assert len(said.split()) <= 150
    one = result.table[0] if name == "groups" else result
    low, high = (rounded(end, one.std_error.total) for end in one.interval())
    assert f"(95 % interval {low} to {high}, p " in said


def test_what_is_less_than_proved_does_not_claim_to_be_private(results):
    simulated = cv.ate(people(), STUDY, protects="outcome", epsilon=1, noise=cv.SeededNoise(1)).write_up()
    assert simulated.startswith("SIMULATED, NOT A PRIVATE RELEASE.")
    assert "satisfies" not in simulated


def test_an_interval_that_is_not_for_the_effect_says_so(results):
    facts = results["one"].report_facts() | {"interval_of": "shrunk_contrast", "caution": "NO VALID INTERVAL"}
    said = write_up(facts)
    assert said.startswith("NO VALID INTERVAL.")
    assert "The interval is not one for the effect" in said
    assert "NOT AN INTERVAL FOR THE EFFECT" in text_of(full_view(facts))


def test_a_sampling_error_of_zero_is_explained(results):
    facts = results["one"].report_facts()
    # The released variance may come out below zero here too, by chance.
    (effect,) = facts["effects"]
    effect["std_error"] = effect["std_error"] | {"sampling": 0.02}
    assert "below zero" not in interval_sentence(facts)
    effect["std_error"] = effect["std_error"] | {"sampling": 0.0}
    assert "came out at or below zero" in interval_sentence(facts)
    assert "came out at or below zero" in " ".join(text_of(short_view(facts)).split())
    assert "lost in the noise" in write_up(facts)


@pytest.mark.parametrize("name", ["one", "groups", "pooled"])
def test_texts_fit_a_terminal_of_eighty_columns(results, name):
    for text in (results[name].summary(), results[name].full()):
        assert max(map(len, text.splitlines())) < 80


def test_a_wide_table_gives_up_gaps_then_parts_then_the_names_place():
    def table(name):
        rows = [[name, "1.234", "0.12", "0.10", "0.07", "[1.000, 1.500]", "0.001"]]
        head = ["", "estimate", "std. error", "sampling", "noise", "95 % interval", "p"]
        return list(text_table(Cells(head, rows)))

    assert "sampling   noise" in table("ATE")[0]
    assert "sampling  noise" in table("n" * 15)[0]
    assert "sampling" not in table("n" * 25)[0]
    names, figures = table("n" * 70)[1:]
    assert names.strip() == "n" * 70
    assert "1.234" in figures


def test_a_list_of_very_many_covariates_is_cut_where_it_is_read_only(results):
    facts = results["one"].report_facts()
    listed = ", ".join(f"'x{place}' [0, 1]" for place in range(500))
    facts["guarantee"] = facts["guarantee"] | {
        "public": ["short", f"the domains of the covariates, {listed}"]
    }
    said = text_of(full_view(facts))
    assert "short" in said
    assert "x10" in said
    assert "x499" not in said
    assert "guarantee.public" in said
    # What folds out is whole.
    assert "x499" in page(report_view(facts))
    assert "x10" not in write_up(facts)
    assert len(write_up(facts).split()) <= 150


def test_caveats_are_cut_to_their_names_and_counted():
    def said(*caveats):
        return short_caveats({"not_covered": [written(one) for one in caveats]})

    long = ResidualImbalance(0.2)
    assert said(Caveat.CLAMPING, long) == f"{fact_words(Caveat.CLAMPING)}; residual imbalance"
    assert said(long, ResidualImbalance(0.3)) == "residual imbalance"
    assert said(*(SitesLeftOut((name * 40,)) for name in "xyz")).endswith("; and 1 more")


def test_nothing_is_cut_within_a_sentence(results):
    facts = results["one"].report_facts()
    facts["not_covered"] = [written(BiasBeyond(float(place), of_each_arm=True)) for place in range(40)]
    facts["method"] = "one, " + "word " * 30
    remarks = ["the first clause; " + "word " * 30, "word " * 30]
    public = ["a list of things, 'x' [0, 1], " + "'y' {a, b}, " * 20, "word " * 20]
    facts["guarantee"] = facts["guarantee"] | {"remarks": remarks, "public": public}
    said = write_up(facts)
    assert "; one)." in said
    assert "The first clause." in said
    assert said.endswith("; further limits are listed in the full report.")
    for text in (said, write_up(facts | {"caution": "word " * 45})):
        assert len(text.split()) <= 150
        assert "..." not in text
        assert "satisfies pure differential privacy" in text
        assert "Further remarks on the guarantee are in the full report." in text
    assert "Taken as public: a list of things; the full report lists the rest." in write_up(
        facts | {"not_covered": ["clamping"]}
    )


def test_people_with_several_rows_are_called_people():
    rows = people(300)
    rows["who"] = np.arange(300) // 3
    rows["t"] = rows["who"] % 2
    study = cv.Study("t", "y", (0, 1), randomised=True, person="who")
    for protects in ("outcome", "record"):
        found = cv.ate(rows, study, protects=protects, epsilon=1)
        said = " ".join(found.full().split())
        assert "from 100 people" in found.write_up()
        assert "people: 100" in said
        assert "has at least 2 people" in said
        known = "how many rows each person has, and their order" in said
        assert known == (protects == "outcome")
        assert "How many people there are" in page(report_view(found.page_facts())) or protects == "outcome"


def test_names_of_files_stay_whole():
    path = "sensitivity/" + "x" * 90 + ".proof.md"
    assert any(path in line for line in wrapped(f"see {path} and-others", "Proofs:      "))
