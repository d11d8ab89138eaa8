"""Reports: a first page that claims no more than the interval, renderings, and paragraphs for papers."""

from html.parser import HTMLParser

import numpy as np
import pytest
from tools.loose_study import study_of

import counterveil as cv
from counterveil.privacy.caveats import Target, written
from counterveil.report import full_view, markdown, page, report_view, text_of, write_up
from counterveil.report.page import escaped
from counterveil.report.pictures import forest_plot
from counterveil.report.text import escape
from counterveil.report.words import answer_words, protection_words

EMPTY = {"meta", "line", "circle", "rect", "polygon", "polyline"}
LOADING = {"src", "href", "xlink:href", "action", "srcset", "data", "background"}


class Page(HTMLParser):
    """Reads a page: what is open, the headings in order, the text; fails on what loads or runs anything."""

    def __init__(self, text):
        super().__init__()
        self.open, self.headings, self.words = [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        assert tag not in ("script", "link", "img", "iframe", "object", "embed", "base", "form")
        names = {name for name, _ in attributes}
        assert not names & LOADING
        assert not any(name.startswith("on") or name == "style" for name in names)
        if dict(attributes).get("role") in ("img", "group", "region"):
            assert dict(attributes)["aria-label"]
        if tag in ("h1", "h2", "h3"):
            self.headings.append(int(tag[1]))
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in EMPTY:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return " ".join("".join(self.words).split())


def read(text):
    """Return the page, whose headings begin with one h1 and never leave out a level."""
    page = Page(text)
    assert page.headings.count(1) == 1
    assert page.headings[0] == 1
    assert all(after <= before + 1 for before, after in zip(page.headings, page.headings[1:], strict=False))
    return page


HOSTILE = (
    """</title></style><script>alert(1)</script>" onload="x' `|*[a](javascript:b) {{7*7}} <!-- ${x} &lt;"""
)


def people(rows=200, names=("t", "y", "age", "site"), labels=("a", "b")):
    rng = np.random.default_rng(5)
    treatment, outcome, age, site = names
    t = np.arange(rows) % 2
    return {
        treatment: t,
        outcome: np.clip(0.3 + 0.3 * t + rng.normal(0, 0.1, rows), 0, 1),
        age: rng.uniform(20, 80, rows) + 5 * t,
        site: rng.choice(labels, rows),
    }


def study(names=("t", "y", "age", "site"), labels=("a", "b"), **declared):
    covariates = {names[2]: cv.Range(20, 85), names[3]: cv.Categories(labels)}
    return study_of(names[0], names[1], (0, 1), covariates, **declared)


@pytest.fixture(scope="module")
def weighted():
    return cv.ate(people(), study(), protects="outcome", epsilon=2, method="weighting", request_id="main")


@pytest.fixture
def facts(weighted):
    return weighted.page_facts()


def test_without_an_interval_for_the_effect_none_is_told(facts):
    facts["interval_target"] = written(Target.CONFOUNDED_DIFFERENCE)
    said = " ".join(answer_words(facts))
    assert "No interval for the effect" in said
    assert "Zero lies" not in said


@pytest.mark.parametrize(
    ("proof", "said"),
    [("none", "Nothing is protected"), ("asymptotic", "not proved"), ("refuted", "has been refuted")],
)
def test_what_is_not_proved_is_not_promised(facts, proof, said):
    facts["guarantee"] = facts["guarantee"] | {"proof": proof}
    (words,) = protection_words(facts)
    assert said in words
    assert "cannot change the odds" not in words


def test_names_cannot_break_out_of_a_page():
    names = tuple(f"{HOSTILE} {place}" for place in range(4))
    marks = (f"{HOSTILE} a", f"{HOSTILE} b")
    result = cv.ate(
        people(100, names, marks), study(names, marks), protects="outcome", epsilon=1, method="weighting"
    )
    facts = result.page_facts()
    text = page(report_view(facts))
    assert "<script" not in text
    shown = read(text).text
    for name in (*names, *marks):
        assert " ".join(name.split()) in shown
    text = markdown(report_view(facts))
    outside = "".join(text.split("```")[::2])
    assert "<script" not in outside.replace(r"\<script", "")
    assert "](javascript" not in outside.replace(r"\]", "")


def test_a_fence_is_longer_than_the_backticks_in_it(facts):
    facts["repeat"] = facts["repeat"] | {"study": "x = '````'"}
    assert "`````toml\nx = '````'\n`````" in markdown(report_view(facts))
    assert escaped("a|b_c\n<d>") == r"a\|b\_c \<d\>"


def test_private_arms_have_no_table_but_its_price_or_what_was_bought(tmp_path):
    data, declared = people(400), study(randomised=True)
    result = cv.ate(data, declared, protects="record", epsilon=2, method="trial")
    assert result.by_arm == {}
    page = result.to_html(tmp_path / "page.html").read_text()
    assert "--protects record --epsilon 0.5" in page
    summary = cv.overlap(data, declared, protects="record", epsilon=2)
    page = result.to_html(tmp_path / "page.html", overlap=summary).read_text()
    assert "cv.overlap(data" not in page
    assert "is a release of its own, with noise" in page
    assert "share treated along the score" in read(page).text or "Share treated" in page


def test_intervals_without_ends_have_no_picture(facts):
    (effect,) = facts["effects"]
    effect["interval"] = effect["interval"] | {"high": float("inf")}
    assert forest_plot([effect]) == ""
    assert "There is no picture" in page(report_view(facts))


@pytest.fixture(scope="module")
def result():
    rng = np.random.default_rng(0)
    t = np.tile([0, 1], 200)
    data = {"t_1 & <b>": t, "y%": rng.random(400) + 0.2 * t}
    study = cv.Study(treatment="t_1 & <b>", outcome=cv.Outcome("y%", (0, 2)), assignment=cv.Trial())
    return cv.ate(data, study, protects="outcome", epsilon=1)


def test_latex_is_escaped_and_balanced(result):
    table = result.to_latex()
    assert r"t\_1 \& $<$b$>$" in table
    assert r"y\%" in table
    assert table.count("{") - table.count(r"\{") == table.count("}") - table.count(r"\}")
    assert escape("a_b{c}") == r"a\_b\{c\}"


SITES = ["a hospital with quite a long name", "b"]
STUDY = cv.Study(
    "t",
    cv.Outcome("y", (0, 1)),
    {"site": cv.Categories(SITES), "sex": cv.Binary()},
    assignment=cv.Trial(),
)


def write_up_people(n=400, seed=0):
    rng = np.random.default_rng(seed)
    t = rng.permutation(n) % 2
    data = {"t": t, "y": np.clip(rng.normal(0.4 + 0.1 * t, 0.2), 0, 1)}
    return data | {"site": rng.choice(SITES, n), "sex": rng.integers(0, 2, n)}


@pytest.fixture(scope="module")
def results():
    asked = {"protects": "outcome", "epsilon": 1}
    one = cv.ate(write_up_people(), STUDY, method="difference_in_means", **asked)
    groups = cv.groups(write_up_people(), STUDY, by=["site", "sex"], **asked)
    return {
        "one": one,
        "groups": groups,
        "pooled": cv.pool([one, cv.ate(write_up_people(seed=1), STUDY, **asked)]),
    }


def test_an_interval_that_is_not_for_the_effect_says_so(results):
    facts = results["one"].report_facts() | {
        "interval_target": "shrunk_contrast",
        "warning": "NO VALID INTERVAL",
    }
    said = write_up(facts)
    assert said.startswith("NO VALID INTERVAL.")
    assert "The interval is not one for the effect" in said
    assert "NOT AN INTERVAL FOR THE EFFECT" in text_of(full_view(facts))


def test_print_shows_every_row_of_a_table():
    rng = np.random.default_rng(1)
    covariates = {f"x{place:02}": rng.uniform(0, 1, 400) for place in range(20)}
    treated = (rng.random(400) < 0.3 + 0.4 * covariates["x00"]).astype(int)
    study = cv.Study("t", cv.Outcome("y", (0, 1)), covariates=dict.fromkeys(covariates, cv.Range(0, 1)))
    rows = covariates | {"t": treated, "y": np.clip(rng.normal(0.5, 0.1, 400), 0, 1)}
    shown = cv.ate(rows, study, protects="outcome", epsilon=1, method="weighting").to_html()
    assert all(f"x{place:02}" in shown for place in range(20))
    printed = shown[shown.index("@media print") : shown.index("</style>")]
    hidden = [line for line in printed.splitlines() if "display: none" in line]
    assert hidden
    assert not any("tr" in line.replace(":", " ").split() or "nth-child" in line for line in hidden)
