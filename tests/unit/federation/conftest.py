import csv
from collections import defaultdict

import pytest

import counterveil as cv
from counterveil.datasets import simulated_trial
from counterveil.federation.setup import make_site, make_study
from counterveil.federation.site import Site
from counterveil.federation.study_files import StudyFolder
from counterveil.privacy import Budget

POLICY = {"estimators": ["difference_in_means"], "protects": ["outcome"], "study_epsilon": "2"}
QUESTION = {"method": "difference_in_means", "protects": "outcome", "epsilon": "1"}


@pytest.fixture(scope="session")
def trial():
    return simulated_trial(400, 0.2, outcome="continuous", seed=3)


@pytest.fixture(scope="session")
def records(trial, tmp_path_factory):
    """A CSV file of the trial."""
    path = tmp_path_factory.mktemp("records") / "records.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(trial.frame)
        writer.writerows(zip(*(column.tolist() for column in trial.frame.values()), strict=True))
    return path


@pytest.fixture
def authority(tmp_path):
    path = tmp_path / "ca.crt"
    path.write_text("-----BEGIN CERTIFICATE-----\n")
    return path


@pytest.fixture
def new_site(tmp_path, trial, records, authority):
    """Makes a site whose clock stands at 1000 seconds."""

    def make(name="North", epsilon=3, data=records, study=None, ledger="ledger.db", delta=0, **policy):
        document = {"name": name, "data": str(data), "ledger": ledger, "coordinator": "127.0.0.1:9092"}
        document["policy"] = POLICY | policy
        file = make_site(tmp_path / name, document, study or trial.study, authority, Budget(epsilon, delta))
        return Site(file, clock=lambda: 1000.0)

    return make


@pytest.fixture
def new_study(tmp_path, trial):
    """Makes a study of the named sites."""

    def make(*sites, **settings):
        document = {"id": "s1", "address": "127.0.0.1:9092", "deadline": 100, "retry": 10} | settings
        document = {"question": QUESTION, "sites": {name: {} for name in sites}} | document
        make_study(tmp_path / "study", document, trial.study, {})
        return StudyFolder(tmp_path / "study")

    return make


class Pigeons:
    """An engine in memory: sites answer when the test lets them."""

    def __init__(self, answers):
        self.answers = answers
        self.here = set(answers)
        self.sent = defaultdict(list)
        self.waiting = []

    def connected(self):
        return set(self.here)

    def send(self, site, text, seconds):
        assert seconds > 0
        self.sent[site].append(text)
        self.waiting.append((site, text))

    def received(self):
        waiting, self.waiting = self.waiting, []
        replies = [(site, self.answers[site](text)) for site, text in waiting]
        return [(site, reply) for site, reply in replies if reply != "silence"]


@pytest.fixture
def pigeons():
    return Pigeons


@pytest.fixture
def budget_spent():
    def spent(site):
        with cv.open_ledger(site.file.ledger) as ledger:
            return ledger.account(site.file.dataset)

    return spent
