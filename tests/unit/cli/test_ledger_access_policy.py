"""Access policies and the two totals on the command line."""

import pytest
from typer.testing import CliRunner

import counterveil as cv
from counterveil.cli.app import app
from counterveil.errors import CounterveilError

RUNNER = CliRunner()
STUDY = cv.Study(
    "arm",
    "relapse",
    (0, 1),
    {"age": cv.Range(18, 90)},
    randomised=True,
    missing={"relapse": cv.drafting.Fill(0)},
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(STUDY.to_toml())
    lines = [f"{i % 2},{i // 2 % 2},{20 + i % 50}" for i in range(400)]
    (tmp_path / "trial.csv").write_text("arm,relapse,age\n" + "\n".join(lines))
    return tmp_path


def run(*words):
    found = RUNNER.invoke(app, list(words))
    assert found.exit_code == 0, found.output
    return found.stdout


def create(*more):
    return run("ledger", "create", "book.db", "--dataset", "trial", "--epsilon", "3", *more)


def draft(folder, protects="outcome"):
    text = run("ledger", "access-policy", "--study", "study.toml", "--protects", protects)
    (folder / "access-policy.toml").write_text(text)
    return cv.drafting.AccessPolicy.from_toml(folder / "access-policy.toml")


def estimate(*more):
    words = ["estimate", "trial.csv", "--study", "study.toml", "--epsilon", "1", "--ledger", "book.db"]
    return RUNNER.invoke(app, [*words, *more])


def test_a_draft_allows_the_study_that_it_was_made_from(folder):
    own = {"outcomes": ["relapse"], "missing": {"relapse": "fill"}, "protects": ["outcome"]}
    assert draft(folder) == cv.drafting.AccessPolicy(public=["arm", "age"], **own)
    create("--access-policy", "access-policy.toml")
    assert estimate("--protects", "outcome").exit_code == 0
    refused = estimate("--protects", "record").exception
    assert isinstance(refused, CounterveilError)
    assert refused.code == "CV-L044"
    assert draft(folder, "record") == cv.drafting.AccessPolicy(
        protects=["record"], missing={"relapse": "fill"}
    )
    pairs = own | {"protects": ["treatment and outcome"]}
    assert draft(folder, "treatment and outcome") == cv.drafting.AccessPolicy(public=["age"], **pairs)
    run(
        "ledger",
        "create",
        "pairs.db",
        "--dataset",
        "trial",
        "--epsilon",
        "3",
        "--access-policy",
        "access-policy.toml",
    )
    assert estimate("--protects", "treatment and outcome", "--ledger", "pairs.db").exit_code == 0


def test_an_access_policy_that_is_wrong_makes_no_ledger(folder):
    (folder / "access-policy.toml").write_text("publik = []")
    words = [
        "ledger",
        "create",
        "book.db",
        "--dataset",
        "trial",
        "--epsilon",
        "3",
        "--access-policy",
        "access-policy.toml",
    ]
    assert RUNNER.invoke(app, words).exception.code == "CV-L040"
    assert not (folder / "book.db").exists()
