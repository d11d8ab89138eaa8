"""Paragraphs for papers, and tables that fit a terminal."""

import numpy as np
import pytest

import counterveil as cv
from counterveil.report import full_view, short_view, text_of, write_up
from counterveil.report.view import interval_sentence

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


def test_an_interval_that_is_not_for_the_effect_says_so(results):
    facts = results["one"].report_facts() | {
        "interval_target": "shrunk_contrast",
        "warning": "NO VALID INTERVAL",
    }
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
