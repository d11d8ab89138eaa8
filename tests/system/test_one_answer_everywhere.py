"""The same rows, question and noise give the same answer wherever people ask.

No surface but Python and R takes a seed: there, the source of noise that sessions open is replaced.
"""

import csv
import json

import numpy as np
import pytest
from tests.command_line import as_json
from tests.system.r.test_r_package import library, r  # noqa: F401
from tests.unit.console.visitor import PLACE, Visitor
from tests.unit.federation.conftest import Pigeons
from tools.loose_study import study_of

import counterveil as cv
from counterveil.federation.coordinator import Clock, Round, pooled
from counterveil.federation.setup import make_site, make_study
from counterveil.federation.site import Site
from counterveil.federation.study_files import StudyFolder
from counterveil.privacy import Budget

SEED = 7
DESIGN = {"covariates": {"age": cv.Range(18, 90)}, "treated": 1, "control": 0, "randomised": True}
STUDIES = {
    "ate": study_of("arm", "score", (0, 10), **DESIGN),
    "survival": study_of("arm", "days", event="died", horizon=60, grid=6, **DESIGN),
}
ASKED = {"protects": "record", "epsilon": "4"}
METHODS = {"ate": "trial", "survival": "kaplan_meier"}
ROWS = 200


class Replayed(cv.SeededNoise):
    """A seeded stream that passes for real noise, as sites refuse to send simulated answers."""

    simulated = False

    def __init__(self):
        super().__init__(SEED)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(4)
    arm, age = rng.integers(0, 2, ROWS), rng.integers(18, 91, ROWS)
    score = np.clip(3 + 2 * arm + rng.integers(-2, 3, ROWS), 0, 10)
    return {
        "arm": arm,
        "age": age,
        "score": score,
        "days": rng.integers(1, 80, ROWS),
        "died": arm ^ (age % 2),
    }


@pytest.fixture
def folder(tmp_path, rows, monkeypatch):
    """A folder with the rows and both studies, where every new source of noise is the same."""
    monkeypatch.setattr("counterveil.session.session.SystemNoise", Replayed)
    monkeypatch.chdir(tmp_path)
    with (tmp_path / "rows.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(rows)
        writer.writerows(zip(*(column.tolist() for column in rows.values()), strict=True))
    (tmp_path / "studies").mkdir()
    for name, study in STUDIES.items():
        (tmp_path / "studies" / f"{name}.toml").write_text(study.to_toml())
    return tmp_path


def told(facts):
    """Return what an answer says, in JSON, but for what its account adds to the guarantee."""
    facts = json.loads(json.dumps(facts))
    facts["guarantee"].pop("remarks")
    return facts


def in_a_session(question, folder):
    with cv.Session("rows.csv", STUDIES[question], budget=cv.Budget(4)) as session:
        return getattr(session, question)(**ASKED, method=METHODS[question]).to_dict()


def at_the_command_line(question, folder):
    command = {"ate": "estimate"}.get(question, question)
    words = [command, "rows.csv", "--study", f"studies/{question}.toml", "--method", METHODS[question]]
    return as_json(*words, "--protects", "record", "--epsilon", 4)


def in_the_console(question, folder):
    pytest.importorskip("jinja2", reason="the extra console is not installed")
    from counterveil.console.application import Console
    from counterveil.console.visit import Sessions, SignedIn
    from counterveil.console.workspace import Workspace

    sessions = Sessions()
    made = Console(Workspace(folder), sessions, PLACE).application()
    with cv.open_ledger(folder / "ledger.db", create=True) as ledger:
        ledger.register("rows", cv.Budget(4))
    visitor = Visitor(made, sessions, SignedIn("ada", steward=True), folder)
    with visitor.client:
        key = visitor.get("/").text.split("/data/")[1][:12]
        asked = {"study": question, "question": question, "method": METHODS[question]}
        done = visitor.ask(key, **ASKED, **asked)
        assert done.status_code == 200, done.text
        return visitor.get(f"{done.url}/result.json").json()


def in_a_federation_of_one(question, folder):
    (folder / "ca.crt").write_text("-----BEGIN CERTIFICATE-----\n")
    policy = {"estimators": [METHODS[question]], "protects": ["record"], "study_epsilon": "4"}
    policy |= {"questions": [question], "diagnostics": True}
    site = {"name": "North", "data": str(folder / "rows.csv"), "ledger": "ledger.db"}
    site |= {"coordinator": "127.0.0.1:9092", "policy": policy}
    file = make_site(folder / "North", site, STUDIES[question], folder / "ca.crt", Budget(4))
    asked = ASKED | {"method": METHODS[question], "question": question}
    study = {"id": "s1", "address": "127.0.0.1:9092", "question": asked, "sites": {"North": {}}}
    make_study(folder / "study", study, STUDIES[question], {})
    made = StudyFolder(folder / "study")
    Round(made, Pigeons({"North": Site(file).answer}), lambda _: None, Clock(sleep=lambda _: None)).run()
    return pooled(made).to_dict()


@pytest.mark.parametrize("question", STUDIES)
@pytest.mark.parametrize(
    "surface", [in_a_session, at_the_command_line, in_the_console, in_a_federation_of_one]
)
def test_the_answer_is_that_of_the_function(surface, question, rows, folder):
    asked = ASKED | {"method": METHODS[question], "noise": Replayed()}
    wanted = getattr(cv, question)(rows, STUDIES[question], **asked).to_dict()
    found = told(surface(question, folder))
    assert {name: found.get(name) for name in wanted} == told(wanted)


R_CODE = """
library(counterveil)
cv <- reticulate::import("counterveil", convert = FALSE)
answer <- function(ask, question, method) {
  declared <- cv$Study$from_toml(paste0("studies/", question, ".toml"))
  study <- structure(list(value = declared), class = "cv_study")
  found <- ask(read.csv("rows.csv"), study, protects = "record", epsilon = 4, method = method, noise = cv_seeded(7))
  cat("\\nANSWER", jsonlite::toJSON(tidy(found), digits = NA), "\\n", sep = "")
}
answer(cv_ate, "ate", "trial")
answer(cv_survival, "survival", "kaplan_meier")
"""


@pytest.mark.slow
def test_the_answer_in_r_is_that_of_the_function(rows, folder, library):  # noqa: F811
    found = r(R_CODE, R_LIBS=str(library))
    assert found.returncode == 0, found.stderr[-4000:]
    answers = [json.loads(line[6:]) for line in found.stdout.splitlines() if line.startswith("ANSWER")]
    for (question, study), answer in zip(STUDIES.items(), answers, strict=True):
        asked = ASKED | {"method": METHODS[question], "noise": Replayed()}
        for wanted, row in zip(getattr(cv, question)(rows, study, **asked).tidy(), answer, strict=True):
            names = ("estimate", "std_error", "conf_low", "conf_high")
            own = [row[name.replace("_", ".")] for name in names]
            # Fifteen digits pass through JSON.
            assert own == pytest.approx([wanted[name] for name in names], rel=1e-13)
