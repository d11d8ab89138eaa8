"""Every kind of result as a frame, as a few lines, as one line, in a notebook and in a paper."""

import json
import keyword
import sys
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from IPython.core.formatters import DisplayFormatter
from tests.unit.report.pages import read

import counterveil as cv
from counterveil.errors import MissingExtraError
from counterveil.questions.plan import Plan
from counterveil.report.view import label
from counterveil.settings import Bins

SITES = ("north", "south", "west")
MANY = 51
KINDS = ("ate", "adjusted", "arms", "groups", "policy", "curve", "model", "queries", "pooled", "plan")
COLUMNS = {
    "term",
    "estimand",
    "estimate",
    "std_error",
    "se_sampling",
    "se_noise",
    "conf_low",
    "conf_high",
    "level",
}


class Older:
    def effect(self, X):
        return np.asarray(X["age"]) / 100


def study(covariates, **declared):
    known = {"age": cv.Range(20, 80), "site": cv.Categories(SITES), "sex": cv.Binary()}
    known |= {f"covariate_{place}": cv.Range(0, 10) for place in range(covariates - 3)}
    return cv.Study("treated", "recovery <b>", (0, 1), known, **declared)


def people(covariates, rows=600, seed=0, arms=2):
    rng = np.random.default_rng(seed)
    data = {
        "age": rng.uniform(20, 80, rows),
        "site": rng.choice(SITES, rows),
        "sex": rng.integers(0, 2, rows),
    }
    data |= {f"covariate_{place}": rng.uniform(0, 10, rows) for place in range(covariates - 3)}
    data["treated"] = rng.permutation(rows) % arms
    return data | {"recovery <b>": np.clip(rng.normal(0.4 + 0.1 * (data["treated"] > 0), 0.2), 0, 1)}


def answers(covariates):
    data, trial = people(covariates), study(covariates, randomised=True)
    shared = study(covariates, randomised=True, treated_share="0.5")
    outcome, record = (
        {"protects": "outcome", "epsilon": 1},
        {"protects": "record", "epsilon": 4, "delta": "1e-6"},
    )
    several = study(covariates, arms=(0, 1, 2), reference=0, randomised=True)
    queries = {name: data[name][:15] for name in shared.covariates}
    noise = cv.SeededNoise(1)
    sites = {name: cv.ate(people(covariates, seed=k), trial, **outcome) for k, name in enumerate(SITES)}
    return {
        "ate": cv.ate(data, trial, method="difference_in_means", **outcome),
        "adjusted": cv.ate(data, study(covariates), method="weighting", noise=noise, **outcome),
        "arms": cv.arms(people(covariates, arms=3), several, **outcome),
        "groups": cv.groups(data, trial, by=["site"], **outcome),
        "policy": cv.policy_value(data, shared, policy=cv.Policy.where(age=(20, 50)), **record),
        "curve": cv.targeting_curve(data, shared, model=Older(), bins=4, **record),
        "model": cv.cate(data, shared, epsilon=8, delta="1e-6"),
        "queries": cv.cate(
            data,
            shared,
            epsilon=8,
            delta="1e-6",
            method="bins",
            queries=queries,
            settings=Bins(by={"age": (50,), "site": None}),
        ),
        "pooled": cv.pool(sites),
        "plan": cv.plan(
            trial, rows=200, epsilon=["1/2", 1], draws=2, protects="outcome", method="difference_in_means"
        ),
    }


@pytest.fixture(scope="module")
def few():
    return answers(3)


@pytest.fixture(scope="module")
def many():
    return answers(MANY)


@pytest.mark.parametrize("kind", KINDS)
def test_effects_are_a_frame_with_the_rows_of_tidy(few, kind):
    result = few[kind]
    rows, found = result.tidy(), result.effects
    assert isinstance(found, pd.DataFrame)
    assert list(found.columns) == list(rows[0])
    assert len(found) == len(rows)
    if kind != "plan":
        assert set(found.columns) >= COLUMNS
        assert (found["conf_low"] <= found["estimate"]).all()
        assert (found["std_error"] >= found["se_noise"]).all()
        assert list(found["estimate"]) == [one.estimate for one in result.table]


@pytest.mark.parametrize("kind", KINDS)
def test_frames_come_from_the_first_library_that_is_installed(few, kind, monkeypatch):
    pa.array([1.0])  # it looks for pandas once, before that is hidden
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert isinstance(few[kind].effects, pl.DataFrame)
    monkeypatch.setitem(sys.modules, "polars", None)
    assert isinstance(few[kind].effects, pa.Table)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match="CV-E070"):
        _ = few[kind].effects


@pytest.mark.parametrize("kind", KINDS)
def test_texts_are_short_and_fit_a_terminal(many, kind):
    result = many[kind]
    assert max(map(len, result.summary().splitlines())) < 80
    assert len(result.summary().splitlines()) <= 40
    assert "\n" not in repr(result)
    assert len(repr(result)) < 400
    assert repr(result).startswith(f"<{type(result).__name__}: ")
    assert len(result.write_up().split()) <= 150


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "plan"])
def test_a_summary_has_guarantee_limits_and_where_to_read_more(few, kind):
    text = few[kind].summary()
    for part in ("Guarantee:", "epsilon", "Not covered:", "full()"):
        assert part in text
    full = few[kind].full()
    for part in ("Public:", "Spent:", "Proofs:", *few[kind].guarantee.pages):
        assert part in full


def test_what_would_mislead_if_left_out_comes_first(few):
    simulated = few["adjusted"]
    for text in (simulated.summary(), simulated.full()):
        assert text.startswith("*** SIMULATED, NOT A PRIVATE RELEASE ***")
    assert "SIMULATED" in repr(simulated)
    assert "NONE: the noise came from a seed" in simulated.summary()
    assert simulated.write_up().startswith("SIMULATED, NOT A PRIVATE RELEASE.")
    other = cv.ate(people(3), study(3), protects="record", epsilon=8, delta="1e-6", method="trial")
    assert other.summary().startswith("*** NO VALID INTERVAL FOR THE EFFECT: ")
    assert "NO VALID INTERVAL FOR THE EFFECT" in repr(other)


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.text = [], []

    def handle_starttag(self, tag, attributes):
        assert tag not in ("script", "link", "img", "iframe")
        assert not any(name in ("src", "href") for name, _ in attributes)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.mark.parametrize("kind", KINDS)
def test_a_notebook_shows_the_lines_of_the_summary_as_a_table(many, kind):
    shown, _ = DisplayFormatter().format(many[kind])
    tags = Tags()
    tags.feed(shown["text/html"])
    assert tags.open == []
    assert "<b>" not in shown["text/html"]
    assert shown["text/plain"] == repr(many[kind])
    words = " ".join("".join(f" {text} " for text in tags.text).split())
    summary = " ".join(many[kind].summary().replace("***", "").replace("-" * 79, "").split())
    # Tables are laid out otherwise; every figure and every line under them is there.
    last = summary.rpartition("More:")[2].strip()
    assert last in words
    assert all(cell in words for cell in summary.split() if cell.startswith("[0."))


@pytest.mark.parametrize("kind", KINDS)
def test_documents_are_read_back(few, kind):
    result = few[kind]
    facts = json.loads(json.dumps(result.to_dict()))
    kinds = {"plan": Plan}
    again = kinds.get(kind, type(result)).from_dict(facts)
    assert again.to_dict() == result.to_dict()
    assert again.summary() == result.summary()


@pytest.mark.parametrize("kind", KINDS)
def test_pages_and_tables_are_written(few, kind, tmp_path):
    page = few[kind].to_html(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<b>" not in page
    assert "://" not in page
    shown = read(page).text
    text = few[kind].to_markdown(tmp_path / "report.md").read_text(encoding="utf-8")
    assert "<b>" not in text.replace(r"\<b\>", "").replace('"recovery <b>"', "")
    if kind != "plan":
        for part in ("Answer", "What is protected", "What the intervals do not cover", "How to repeat it"):
            assert part in shown
            assert f"## {part}" in text
    table = few[kind].to_latex()
    assert table.count(r"\\") >= 2
    assert table.rstrip().endswith(r"\end{tabular}")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "plan"])
def test_details_are_identifiers_with_words_for_print(few, kind):
    for key in few[kind].details:
        assert key.isidentifier()
        assert not keyword.iskeyword(key)
        assert label(key) in few[kind].full().replace("\n             ", " ")


def test_a_model_is_shown_at_points_that_move_one_covariate_at_a_time(few):
    model = few["model"]
    names = [row["point"] for row in model.tidy()]
    if not model.heterogeneous:
        assert names == ["everybody"]
        return
    assert names == ["centre", "age = 20", "age = 80", "site = south", "site = west", "sex = 1"]
    centre = {"age": [50.0], "site": ["north"], "sex": [0]}
    assert model.tidy()[0]["estimate"] == pytest.approx(model.effect(centre)[0])
    low, high = model.interval(centre)
    assert (model.tidy()[0]["conf_low"], model.tidy()[0]["conf_high"]) == pytest.approx((low[0], high[0]))


def test_pooled_rows_name_sites_and_their_own_budget(few):
    rows = few["pooled"].tidy()
    assert [row["site"] for row in rows] == [*SITES, "pooled"]
    assert [row["type"] for row in rows] == ["study"] * 3 + ["summary"]
    assert sum(row["weight"] for row in rows[:-1]) == pytest.approx(1)
