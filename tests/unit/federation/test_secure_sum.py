"""Sites whose parts are added up under masks: the answer of all rows, and what happens when a site misbehaves."""

import csv
import json

import numpy as np
import pytest

import counterveil as cv
from counterveil.errors import CounterveilError
from counterveil.federation.coordinator import Clock, pooled
from counterveil.federation.sum_round import SumRound

NAMES = ("North", "South", "West")
QUESTION = {"method": "trial", "protects": "record", "epsilon": "1", "settings": {"adjustment": "none"}}


class Time:
    """A clock that moves when somebody sleeps."""

    def __init__(self):
        self.at = 900.0

    def clock(self):
        return Clock(lambda: self.at, self.sleep)

    def sleep(self, seconds):
        self.at += seconds


@pytest.fixture
def sites(tmp_path, trial, new_site):
    """Three sites that hold the trial's rows between them and know each other."""
    frame, found = trial.frame, {}
    columns = [column.tolist() for column in frame.values()]
    for name, rows in zip(NAMES, np.array_split(np.arange(len(columns[0])), 3), strict=True):
        path = tmp_path / f"{name}.csv"
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(frame)
            writer.writerows([[column[row] for column in columns] for row in rows])
        found[name] = new_site(name, data=path, estimators=["trial"], protects=["record"])
    for site in found.values():
        (site.file.folder / "peers").mkdir()
        for name, other in found.items():
            if name != site.file.name:
                text = (other.file.keys / "node.pub").read_bytes()
                (site.file.folder / "peers" / f"{name}.pub").write_bytes(text)
    return found


@pytest.fixture
def summed(tmp_path, new_study, sites):
    study = new_study(*NAMES, aggregation="secure", quorum=2, question=QUESTION)
    for name, site in sites.items():
        (study.path / "sites" / f"{name}.pub").write_bytes((site.file.keys / "node.pub").read_bytes())
    return study


def run(study, pigeons, sites, time=None, **instead):
    said = []
    answers = {name: site.answer for name, site in sites.items()} | instead
    SumRound(study, pigeons(answers), said.append, (time or Time()).clock()).run()
    return said


def test_one_answer_about_all_rows(summed, sites, pigeons, budget_spent, trial):
    said = run(summed, pigeons, sites)
    print(said)
    from counterveil.federation.coordinator import states
    print([(s.site,s.state) for s in states(summed)])
    result = pooled(summed)
    assert result.details["rows"] == trial.frame["outcome"].size if "outcome" in trial.frame else 400
    assert result.details["mechanism"] == "summed_laplace"
    assert "federation/masking.proof.md" in result.guarantee.pages
    assert abs(result.estimate - 0.2) < 0.5
    assert {str(budget_spent(site).spent.epsilon) for site in sites.values()} == {"1"}

def test_dbg(summed, sites, pigeons):
    run(summed, pigeons, sites)
    from counterveil.questions.pooled.pool import read_result
    read_result(summed.reply("North").result, "a site", measures=False)
