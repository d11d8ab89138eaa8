"""Files without a codebook, by scripted answers in the terminal, to a plan and a report."""

import csv
import re

import numpy as np
import pytest
from tests.command_line import said as run

import counterveil as cv

MOST_QUESTIONS = 12
PEOPLE = 200


@pytest.fixture
def way(tmp_path, monkeypatch):
    """Return a function that writes columns to a file, answers questions about them, plans and asks."""
    monkeypatch.chdir(tmp_path)

    def walked(columns, answers, question):
        with (tmp_path / "rows.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(columns)
            rows.writerows(zip(*(values.tolist() for values in columns.values()), strict=True))
        said = run("draft", "rows.csv", "--ask", typed="".join(f"{line}\n" for line in answers))
        assert len(re.findall(r"\[\d+\] ", said)) == len(answers) <= MOST_QUESTIONS
        assert "open questions" not in said
        asked = ("--study", "study.toml", "--protects", "outcome", "--epsilon", "4")
        if question == "estimate":
            assert "nothing was spent" in run("plan", *asked, "--rows", str(PEOPLE), "--draws", "1")
        run(question, "rows.csv", *asked, "--report", "report.html")
        assert "<html" in (tmp_path / "report.html").read_text(encoding="utf-8")
        return said, cv.Study.from_toml("study.toml")

    return walked


def numbers(seed, stem, count, high=2):
    return {f"{stem}_{place}": values for place, values in enumerate(_draws(seed, count, high))}


def _draws(seed, count, high):
    return np.random.default_rng(seed).integers(0, high, (count, PEOPLE))


def test_83_columns(way):
    rng = np.random.default_rng(83)
    columns = {
        "ptid": np.arange(PEOPLE),
        "rhc": rng.integers(0, 2, PEOPLE),
        "age": rng.integers(18, 91, PEOPLE),
        "sex": rng.choice(["f", "m"], PEOPLE),
        "ward": rng.choice(["A", "B", "C"], PEOPLE),
        "dthdte": np.full(PEOPLE, "2020-01-01"),
        "discharge_day": rng.integers(0, 60, PEOPLE),
        "died30": rng.integers(0, 2, PEOPLE),
    }
    columns |= numbers(1, "lab", 2, 10) | numbers(2, "hist", 2) | numbers(3, "item", 71, 6)
    assert len(columns) == 83
    answers = ["rhc", "0, 1", "died30", "binary", "", "no", "age, sex, ward, l*, h*", "18:90"]
    answers += ["sex=f|m, ward=A;B;C", "lab_*=0:9, hist_*=binary"]
    said, study = way(columns, answers, "estimate")
    assert "ptid (identifier), dthdte (date), discharge_day (after treatment)" in said
    assert len(study.covariates) == 7
    assert study.covariates["hist_1"] == cv.Binary()


def test_three_arms_and_thirty_metrics(way):
    arm = np.random.default_rng(3).choice(["none", "mail", "call"], PEOPLE)
    columns = {"arm": arm} | numbers(4, "metric", 30, 11)
    answers = ["arm", "none, mail, call", "metric_*", "0:10", "yes"]
    _, study = way(columns, answers, "outcomes")
    assert study.arms == ("none", "mail", "call")
    assert len(study.outcomes) == 30


def test_a_time_to_an_event(way):
    rng = np.random.default_rng(5)
    columns = {"arm": rng.integers(0, 2, PEOPLE), "days": rng.integers(1, 400, PEOPLE)}
    columns |= {"death": rng.integers(0, 2, PEOPLE), "age": rng.integers(18, 91, PEOPLE)}
    answers = ["arm", "0, 1", "Surv(days, death)", "360", "yes", "none"]
    _, study = way(columns, answers, "survival")
    assert (study.event.column, float(study.event.horizon)) == ("death", 360)


def test_people_with_several_rows(way):
    people = np.arange(PEOPLE) // 2
    columns = {"patient_id": people, "visit": np.arange(PEOPLE) % 2, "arm": people % 2}
    columns |= numbers(6, "pain", 1, 11)
    answers = ["arm", "0, 1", "pain_0", "0:10", "patient_id, visit, 2", "yes"]
    _, study = way(columns, answers, "estimate")
    assert (study.person.column, study.person.order, study.person.max_rows_per_person) == (
        "patient_id",
        "visit",
        2,
    )
