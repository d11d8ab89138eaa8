"""Drafts and checks in the browser: open questions, all findings at once, several studies in one file."""

from tests.unit.console.visitor import SECRET, STUDY, code_of, words

CODEBOOK = """\
name,kind,low,high,labels
score,range,0,100,
age,range,18,90,
site,categories,,,north|south
"""


def test_a_draft_places_every_column_and_lists_what_is_open(steward, folder):
    (folder / "codebooks").mkdir()
    (folder / "codebooks" / "book.csv").write_text(CODEBOOK)
    typed = {"name": "second", "source": "trial", "codebook": "codebooks/book.csv"}
    made = steward.post("/studies/new", "/studies/new", **typed)
    assert made.status_code == 200, words(made)
    text = (folder / "studies" / "second.toml").read_text()
    assert "[ignored]" in text
    assert "age = { range = [18, 90] }" in text
    assert "4 open questions" in words(made)
    assert SECRET not in made.text
    roles = {"treated": {"role": "treatment"}, "score": {"role": "outcome"}}
    saved = steward.fill("/studies/second", "/studies/second", roles, randomised="yes", described="1")
    assert "Effect of treated on score, 2 covariates. Nothing is open." in words(saved)


def test_a_draft_takes_only_what_is_in_the_folder(steward, analyst, folder):
    steward.register()
    (folder / "other.csv").write_text(CODEBOOK)
    outside = {"name": "new", "codebook": "../../etc/passwd"}
    assert code_of(steward.post("/studies/new", "/studies/new", **outside)) == "CV-W004"
    assert code_of(steward.post("/studies/new", "/studies/new", name="new", source="absent")) == "CV-W004"
    # A file that lies beside the rows may be rows that are not registered yet.
    assert "other.csv" in steward.get("/studies/new").text
    assert "other.csv" not in analyst.get("/studies/new").text
    assert (
        code_of(analyst.post("/studies/new", "/studies/new", name="new", codebook="other.csv")) == "CV-W004"
    )


def test_a_check_finds_everything_at_once_and_shows_labels_to_the_steward_alone(steward, analyst, folder):
    access_policy = 'public = ["age", "site", "treated", "ward", "absent"]\n'
    key = steward.register(access_policy=access_policy)
    wrong = STUDY.replace('"north", "south"', '"north", "east"') + 'ward = { categories = ["a", "b"] }\n'
    (folder / "studies" / "primary.toml").write_text(wrong + "absent = { range = [0, 1] }\n")
    found = words(steward.get(f"/studies/primary/check?data={key}"))
    assert all(f"'{name}'" in found for name in ("site", "ward", "absent"))
    assert SECRET not in found
    shown = words(steward.get(f"/studies/primary/check?data={key}&labels=1"))
    assert f"{SECRET}: 60" in shown
    kept = words(analyst.get(f"/studies/primary/check?data={key}&labels=1"))
    assert "The study fits the access policy." in kept
    assert SECRET not in kept
    assert "'absent'" not in kept


def test_proposals_are_limited(steward, analyst, folder):
    steward.register()
    place = folder / "studies" / "proposed"
    place.mkdir()
    for number in range(100):
        (place / f"p{number}.toml").write_text("")
    assert code_of(analyst.post("/studies/new", "/studies/new", name="more")) == "CV-W004"
