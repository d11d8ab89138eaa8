"""Loaders of data that need credentials, on made files of their shape."""

import numpy as np
import pandas as pd
import pytest

from counterveil.errors import DataError
from counterveil_lab.reproduce.papers.cate.claims import CLAIMS
from counterveil_lab.reproduce.papers.cate.figures import FIGURES
from counterveil_lab.reproduce.papers.cate.medical import MIMIC_FILES, TCGA_FILES, is_there, mimic
from counterveil_lab.reproduce.protocol import Verdict

STAYS, HOURS = 60, 26
LEVELS = {
    "heart rate": 85,
    "sodium": 139,
    "red blood cell count": 3.8,
    "glucose": 130,
    "hematocrit": 32,
    "respiratory rate": 18,
}


def write(folder, name, frame):
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    frame.to_csv(path, index=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with both data sets: two stays are too short, and one lacks a measure throughout."""
    rng, made = np.random.default_rng(0), tmp_path_factory.mktemp("data")
    hours = [HOURS if stay > 1 else 8 for stay in range(STAYS)]
    ids = np.repeat(np.arange(STAYS), hours)
    hourly = pd.DataFrame(
        {"icustay_id": ids, "hours_in": np.concatenate([np.arange(count) for count in hours])}
    )
    for name, level in LEVELS.items():
        hourly[name] = (
            level * rng.uniform(0.9, 1.1, len(hourly)) * np.repeat(rng.uniform(0.9, 1.1, STAYS), hours)
        )
    hourly.loc[hourly["icustay_id"] == 2, "glucose"] = np.nan
    write(made, MIMIC_FILES[0], hourly)
    vent = np.repeat(rng.uniform(size=STAYS) < 0.5, hours).astype(int)
    write(made, MIMIC_FILES[1], hourly[["icustay_id", "hours_in"]].assign(vent=vent, vaso=0))
    gender = np.where(np.arange(STAYS) % 2, "F", "M")
    age = rng.uniform(20, 90, STAYS)
    write(made, MIMIC_FILES[2], pd.DataFrame({"icustay_id": range(STAYS), "gender": gender, "age": age}))
    spread = np.linspace(3, 0.1, 14)
    write(made, TCGA_FILES[0], pd.DataFrame(rng.normal(8, spread, (90, 14))).add_prefix("gene_"))
    return made


@pytest.fixture(scope="module")
def stays(folder):
    return mimic(3, folder)


def test_mimic_has_a_stay_a_row_without_missing_values_and_outliers(stays):
    rows = len(stays.frame["y"])
    # Two stays are too short, one has no glucose, and each end of eight numbers cuts one stay off at most.
    assert STAYS - 3 - 16 <= rows < STAYS - 3
    assert set(stays.study.covariates) == {*LEVELS, "age", "gender"}
    assert not any(pd.isna(stays.frame[name]).any() for name in stays.frame)
    assert set(stays.frame["vent"]) == {0, 1}
    assert 28 < stays.frame["hematocrit"].min() < stays.frame["hematocrit"].max() < 36


def test_figures_of_data_that_are_not_there_have_no_cells_and_their_claims_cannot_be_checked(monkeypatch):
    monkeypatch.delenv("COUNTERVEIL_DATA", raising=False)
    assert not is_there(MIMIC_FILES)
    own = {figure.name: figure for figure in FIGURES}
    assert own["figure6"].cells(False) == own["figure7"].cells(False) == []
    judged = [claim.judge({}) for claim in CLAIMS if claim.figures == ()]
    assert [one.verdict for one in judged] == [Verdict.CANNOT_BE_CHECKED] * 2
    assert all("credentials" in one.why for one in judged)
    with pytest.raises(DataError, match="CV-D040"):
        mimic(1)
