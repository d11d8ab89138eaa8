import shutil

import pytest
from tests.command_line import as_json, said

from counterveil.errors import CounterveilError
from counterveil.federation.coordinator import Clock, Round
from counterveil.federation.site import Site
from counterveil.federation.site_files import SiteFile
from counterveil.federation.study_files import StudyFolder


@pytest.fixture
def federation(tmp_path, trial, records):
    """Three sites and a study, made with the commands that people type."""
    declaration = tmp_path / "declaration.toml"
    declaration.write_text(trial.study.to_toml())
    study = tmp_path / "study"
    question = ["--method", "difference_in_means", "--protects", "outcome", "--epsilon", "1"]
    sites = [word for name in ("North", "South", "West") for word in ("--site", name)]
    place = ["--id", "s1", "--study", declaration, "--address", "127.0.0.1:9092", "--quorum", 2]
    made = as_json("federation", "coordinator", "create", study, *place, *question, *sites)
    assert made["keys_missing"] == ["North", "South", "West"]
    for name in made["keys_missing"]:
        rules = ["--epsilon", 3, "--study-epsilon", 1, "--method", "difference_in_means"]
        rules += ["--approval", "by hand"] if name == "West" else []
        words = ["--name", name, "--data", records, "--study", declaration]
        words += ["--coordinator", "127.0.0.1:9092", "--authority", made["authority"]]
        key = as_json("federation", "site", "create", tmp_path / name, *words, *rules)["public_key"]
        shutil.copy(key, study / "sites" / f"{name}.pub")
    return tmp_path


def test_masked_sums_are_asked_for_and_said(tmp_path, trial):
    (tmp_path / "declaration.toml").write_text(trial.study.to_toml())
    words = [
        "federation",
        "coordinator",
        "create",
        tmp_path / "study",
        "--id",
        "s1",
        "--address",
        "127.0.0.1:9092",
    ]
    words += [
        "--study",
        tmp_path / "declaration.toml",
        "--protects",
        "record",
        "--epsilon",
        "1",
        "--method",
        "trial",
    ]
    words += ["--set", "adjustment=none", "--aggregation", "secure", "--colluding", "1"]
    made = as_json(*words, *(word for name in ("North", "South", "West") for word in ("--site", name)))
    assert (made["aggregation"], made["colluding"]) == ("secure", 1)
    assert as_json("federation", "coordinator", "status", tmp_path / "study")["aggregation"] == "secure"
    assert "one noise for 3 sites" in said("federation", "coordinator", "status", tmp_path / "study")


def test_the_verbs_from_keys_to_result(federation, pigeons):
    study = federation / "study"
    assert as_json("federation", "site", "check", federation / "North")["rows"] == 400
    assert [site["state"] for site in as_json("federation", "coordinator", "status", study)["sites"]] == [
        "no answer yet"
    ] * 3
    with pytest.raises(CounterveilError, match="CV-F020"):
        as_json("federation", "coordinator", "result", study)
    names = ("North", "South", "West")
    answers = {name: Site(SiteFile.read(federation / name)).answer for name in names}
    time = [0.0]

    def sleep(seconds):
        time[0] += 100 * seconds

    def ask():
        # The sites' clocks are this machine's, so deadlines are far away.
        clock = Clock(lambda: 4e9 + time[0], sleep)
        Round(StudyFolder(study), pigeons(answers), lambda _: None, clock).run()

    ask()
    states = {site["site"]: site for site in as_json("federation", "coordinator", "status", study)["sites"]}
    assert states["West"]["refusal"] == "CV-F006"
    assert [site["name"] for site in as_json("federation", "coordinator", "result", study)["sites"]] == [
        "North",
        "South",
    ]
    (waiting,) = as_json("federation", "site", "requests", federation / "West")["requests"]
    decided = as_json("federation", "site", "approve", federation / "West", waiting["key"])
    assert decided["requests"][0]["state"] == "approved"
    ask()
    page = federation / "pooled.html"
    words = ("--method", "ivw", "--report", page)
    assert len(as_json("federation", "coordinator", "result", study, *words)["sites"]) == 3
    assert all(name in page.read_text() for name in (*names, "<svg"))
