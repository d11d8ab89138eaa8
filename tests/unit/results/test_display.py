"""Every kind of result as a frame, as a few lines, as one line and in a notebook."""

import sys
from functools import cache
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from IPython.core.formatters import DisplayFormatter
from tests.unit.results.test_every_kind import MADE, OUTCOME, made

import counterveil as cv
from counterveil.errors import MissingExtraError

MANY = 51
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
EFFECTS = (
    "Result",
    "ArmsResult",
    "GroupsResult",
    "PolicyValue",
    "TargetingCurve",
    "CateModel",
    "CateAnswers",
)


@cache
def wide():
    """Return an answer about more covariates than a terminal has lines, whose outcome has a name like a tag."""
    rng = np.random.default_rng(0)
    known = {f"covariate_{place}": rng.uniform(0, 10, 600) for place in range(MANY)}
    arm = rng.permutation(600) % 2
    rows = known | {"arm": arm, "recovery <b>": np.clip(rng.normal(0.4 + 0.1 * arm, 0.2), 0, 1)}
    study = cv.Study("arm", "recovery <b>", (0, 1), dict.fromkeys(known, cv.Range(0, 10)))
    return cv.ate(rows, study, method="weighting", noise=cv.SeededNoise(1), **OUTCOME)


def shown(kind):
    return wide() if kind == "wide" else made(kind)


@pytest.mark.parametrize("kind", EFFECTS)
def test_effects_are_a_frame_with_the_rows_of_tidy(kind):
    result = made(kind)
    rows, found = result.tidy(), result.effects
    assert isinstance(found, pd.DataFrame)
    assert list(found.columns) == list(rows[0])
    assert set(found.columns) >= COLUMNS
    assert (found["conf_low"] <= found["estimate"]).all()
    assert (found["std_error"] >= found["se_noise"]).all()
    assert list(found["estimate"]) == [one.estimate for one in result.table]


def test_frames_come_from_the_first_library_that_is_installed(monkeypatch):
    pa.array([1.0])  # it looks for pandas once, before that is hidden
    found = made("Result")
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert isinstance(found.effects, pl.DataFrame)
    monkeypatch.setitem(sys.modules, "polars", None)
    assert isinstance(found.effects, pa.Table)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match="CV-E070"):
        _ = found.effects


@pytest.mark.parametrize("kind", ["wide", *MADE])
def test_texts_are_short_and_fit_a_terminal(kind):
    result = shown(kind)
    assert max(map(len, result.summary().splitlines())) < 80
    assert len(result.summary().splitlines()) <= 40
    assert "\n" not in repr(result)
    assert len(repr(result)) < 400


def test_what_would_mislead_if_left_out_comes_first():
    simulated = wide()
    for text in (simulated.summary(), simulated.full()):
        assert text.startswith("*** SIMULATED, NOT A PRIVATE RELEASE ***")
    assert "SIMULATED" in repr(simulated)
    assert simulated.write_up().startswith("SIMULATED, NOT A PRIVATE RELEASE.")
    confounded = made("Result without an interval")
    assert confounded.summary().startswith("*** NO VALID INTERVAL FOR THE EFFECT: ")
    assert "NO VALID INTERVAL FOR THE EFFECT" in repr(confounded)


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


@pytest.mark.parametrize("kind", ["wide", *MADE])
def test_a_notebook_shows_the_lines_of_the_summary_as_a_table(kind):
    found, _ = DisplayFormatter().format(shown(kind))
    tags = Tags()
    tags.feed(found["text/html"])
    assert tags.open == []
    assert "<b>" not in found["text/html"]
    assert found["text/plain"] == repr(shown(kind))
    words = " ".join("".join(f" {text} " for text in tags.text).split())
    # Tables are laid out otherwise, those of a regression as other packages have them; figures are there.
    assert kind == "Regression" or all(
        cell in words for cell in shown(kind).summary().split() if cell.startswith("[0.")
    )
