"""Three sites and a coordinator on one disk; a test may change what any site says.

Nothing but texts is exchanged, and texts are changed as JSON, so that the same attack can be tried on other versions.
"""

import json
import random
from functools import cache

import numpy as np
import pytest

import counterveil as cv
from counterveil.federation.coordinator import Clock, Round, read_reply, states
from counterveil.federation.messages import Head, Reply
from counterveil.federation.setup import make_site, make_study
from counterveil.federation.site import Site, checked_arguments
from counterveil.federation.study_files import StudyFolder
from counterveil.privacy import Budget
from counterveil.questions.asking import ask_of

NAMES = ("North", "South", "West")
SEX = {"sex": cv.Binary()}
STUDY = cv.Study(cv.Treatment("t", control=0), cv.Outcome("y", (0, 1)), SEX, assignment=cv.Trial())
TWO = cv.Study(
    cv.Treatment("t", control=0),
    outcome={"y": (0, 1), "z": (0, 5)},
    covariates=SEX,
    assignment=cv.Trial(),
)
ARMS = cv.Study(
    cv.Treatment("arm", arms=("a", "b", "c"), reference="a"),
    cv.Outcome("y", (0, 1)),
    SEX,
    assignment=cv.Trial(),
)
TIMES = cv.Study(
    cv.Treatment("t", control=0),
    cv.TimeToEvent("days", "e", horizon=24, grid=4),
    covariates=SEX,
    assignment=cv.Trial(),
)
# Every question that pools beside `ate`, with every kind of number that its answers hold.
QUESTIONS = {
    "arms": (ARMS, {"question": "arms"}),
    "weighted arms": (ARMS, {"question": "arms", "method": "weighting"}),
    "groups": (STUDY, {"question": "groups", "options": {"by": "sex"}}),
    "groups of records": (
        STUDY,
        {"question": "groups", "options": {"by": "sex"}, "method": "arms", "protects": "record"},
    ),
    "groups of pairs": (
        STUDY,
        {
            "question": "groups",
            "options": {"by": "sex"},
            "method": "adjusted",
            "protects": "treatment and outcome",
        },
    ),
    "outcomes": (TWO, {"question": "outcomes"}),
    "outcomes of records": (TWO, {"question": "outcomes", "method": "trial", "protects": "record"}),
    "survival": (TIMES, {"question": "survival", "method": "kaplan_meier"}),
    "survival of records": (TIMES, {"question": "survival", "method": "stratified", "protects": "record"}),
    "moments": (
        STUDY,
        {"question": "moments", "method": "moments", "protects": "record", "epsilon": "8", "delta": "1e-6"},
    ),
    "moments of outcomes": (STUDY, {"question": "moments", "method": "moments"}),
}
DEADLINE = 4e9


class Pigeons:
    """An engine in memory: a site's answer is what `answers` makes of the request."""

    def __init__(self, answers):
        self.answers = answers
        self.waiting = []

    def connected(self):
        return set(self.answers)

    def send(self, site, text, seconds):
        self.waiting.append((site, self.answers[site](text)))

    def received(self):
        waiting, self.waiting = self.waiting, []
        return waiting


class World:
    def __init__(self, path, declared=STUDY, **question):
        self.path, self.declared = path, declared
        self.question = {"method": "difference_in_means", "protects": "outcome", "epsilon": "1"} | question
        self.sites = {name: self.site(name, place) for place, name in enumerate(NAMES)}
        document = {"id": "s1", "address": "127.0.0.1:9092", "deadline": 100, "retry": 10, "quorum": 2}
        document["question"] = self.question
        document["sites"] = {name: {} for name in NAMES}
        make_study(path / "study", document, declared, {})

    @property
    def study(self):
        return StudyFolder(self.path / "study")

    def site(self, name, seed, **policy):
        source = random.Random(seed)
        data = self.path / f"{name}.csv"
        rows = [f"{k % 2},{source.random():.3f},{k % 3 % 2},{k}" for k in range(400)]
        more = [f"{'abc'[k % 3]},{k % 50 / 10},{1 + k % 24},{k % 7 % 2}" for k in range(400)]
        lines = [f"{one},{other}" for one, other in zip(rows, more, strict=True)]
        data.write_text("t,y,sex,id,arm,z,days,e\n" + "\n".join(lines) + "\n")
        authority = self.path / "ca.crt"
        authority.write_text("-----BEGIN CERTIFICATE-----\n")
        rules = {"estimators": [self.question["method"]], "study_epsilon": "100"} | policy
        rules = {"questions": [self.question.get("question", "ate")]} | rules
        rules |= {
            "max_delta": self.question.get("delta", 0),
            "protects": [self.question["protects"]],
            "measures": [self.question.get("measure", "difference")],
        }
        document = {"name": name, "data": str(data), "coordinator": "127.0.0.1:9092", "policy": rules}
        budget = Budget(20, "1e-5")
        file = make_site(self.path / name, document, self.declared, authority, budget)
        return Site(file, clock=lambda: 1000.0)

    def request(self, name, request_id=None, **ask):
        """Return a request as text; with an id it is one of its own, with another question."""
        facts = json.loads(self.study.request(name, DEADLINE).to_text())
        if request_id is not None:
            facts["request_id"] = request_id
        facts["ask"] |= ask
        return json.dumps(facts)

    def run(self, **forgeries):
        """Run the study; a forgery takes a site's true reply as facts and returns a text. Return what is said."""
        said, at = [], [1000.0]

        def honest(name):
            def answer(text):
                true = self.sites[name].answer(text)
                return forgeries[name](json.loads(true)) if name in forgeries else true

            return answer

        def sleep(seconds):
            at[0] += seconds

        Round(
            self.study,
            Pigeons({name: honest(name) for name in NAMES}),
            said.append,
            Clock(lambda: at[0], sleep),
        ).run()
        return said


class Paper:
    """A study of one of the questions with the answers of three sites, which a test may change before they are read.

    Sites and coordinator are those of `World` without processes, ledgers and tables on a disk: answers are made here.
    """

    def __init__(self, path, name):
        declared, question = QUESTIONS[name]
        self.question = {"method": "difference_in_means", "protects": "outcome", "epsilon": "1"} | question
        document = {"id": "s1", "address": "127.0.0.1:9092", "quorum": 2, "question": self.question}
        make_study(path, document | {"sites": {site: {} for site in NAMES}}, declared, {})
        self.study = StudyFolder(path)
        self.texts = {}
        for seed, site in enumerate(NAMES):
            result = ask_of_rows(declared, self.study.study.ask, np.random.default_rng(seed))
            reply = Reply.to(self.study.request(site), result=result, head=Head(1, "0" * 64))
            self.texts[site] = reply.to_text()

    def run(self, **forgeries):
        """Read the answers, forged ones among them, and return what becomes of every site."""
        for site, text in self.texts.items():
            (self.study.path / "replies" / f"{site}.json").unlink(missing_ok=True)
            said = forgeries[site](json.loads(text)) if site in forgeries else text
            reply = read_reply(self.study, site, said)
            if reply is not None:
                self.study.keep(site, reply)
        return {each.site: each.state for each in states(self.study)}


def ask_of_rows(declared, ask, source):
    """Return the facts of an answer about 400 rows in memory, by the arguments that a site makes of the question."""
    rows = np.arange(400)
    frame = {"t": rows % 2, "y": source.uniform(0, 1, 400).round(3), "sex": rows % 3 % 2, "z": rows % 50 / 10}
    frame |= {"arm": np.array(["a", "b", "c"])[rows % 3], "days": 1.0 + rows % 24, "e": rows % 7 % 2}
    with cv.Session(frame, declared, budget=cv.Budget(ask.epsilon, ask.delta)) as session:
        return ask_of(session, checked_arguments(declared, ask)).to_dict()


@pytest.fixture(scope="session")
def paper(tmp_path_factory):
    """Makes the study of a question, once."""
    return cache(lambda name: Paper(tmp_path_factory.mktemp("paper") / "study", name))


def changed(**changes):
    """Return a forgery: the true reply with other facts in its result; `__` in a name goes into a table or a list."""

    def forge(facts):
        for path, value in changes.items():
            table = facts["result"]
            *tables, last = path.split("__")
            for name in tables:
                table = table[int(name) if isinstance(table, list) else name]
            table[int(last) if isinstance(table, list) else last] = value
        return json.dumps(facts)

    return forge


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


@pytest.fixture
def measured(tmp_path):
    """Makes a world whose sites are asked for a measure."""
    return lambda **question: World(tmp_path, **question)


@pytest.fixture
def forged():
    return changed
