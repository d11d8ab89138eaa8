"""The commands draft and check: options, questions, exit codes, files."""

import json

import pytest
from tests.command_line import asked

import counterveil as cv
from counterveil.cli import asking

BOOK = "name,kind,low,high,labels\narm,,,,0=usual|1=new\nage,range,18,90,\nsite,,,,A|B\nbmi,range,,,\ny,range,0,9,\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    rows = "".join(f"{i},{i % 2},{20 + i % 50},{'AB'[i % 3 > 0]},{20 + i % 9},{i % 10}\n" for i in range(600))
    (tmp_path / "t.csv").write_text("id,arm,age,site,bmi,y\n" + rows)
    (tmp_path / "book.csv").write_text(BOOK)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words, typed=None, code=0):
    found = asked(*words, typed=typed)
    if isinstance(found.exception, cv.CounterveilError):
        return found.exception.code
    assert found.exit_code == code, found.output
    return found.stdout


DRAFT = ("draft", "t.csv", "--codebook", "book.csv")
KNOWN = (
    "--treatment",
    "arm",
    "--outcome",
    "y",
    "--assignment",
    "trial",
    "--covariate",
    "all",
    "--range",
    "bmi=10:60",
)


def test_a_draft_is_printed_or_written_once(folder):
    assert '[treatment]\ncolumn = "arm"' in run(*DRAFT, *KNOWN)
    said = run(*DRAFT, *KNOWN, "--out", "study.toml")
    assert "3 covariates, 1 unused, of 6 columns" in said
    assert "Set aside by name or kind: id (identifier)" in said
    assert run(*DRAFT, *KNOWN, "--out", "study.toml") == "CV-P722"
    run(
        *DRAFT, *KNOWN, "--out", "study.toml", "--overwrite", "--where", "age >= 30", "--labels", "site=A,B,C"
    )
    study = cv.Study.from_toml("study.toml")
    assert study.covariates["site"].labels == ("A", "B", "C")
    assert "480 rows where age >= 30" in run("check", "t.csv", "--study", "study.toml")


def test_questions_can_be_left_and_resumed(folder):
    typed = "nobody\narm\n0, 1\ny\n7\n0:9\nquit\n"
    said = run("draft", "t.csv", "--ask", typed=typed)
    assert "open questions" in said
    written = (folder / "study.toml").read_text()
    for line in (
        'column = "arm"',
        "treated = 1",
        "control = 0",
        "range = [0, 9]",
        'assignment = "?"',
    ):
        assert line in written
    # The end of the input leaves all as Ctrl-C does, and nothing is spent.
    typed = "\nperhaps\nno\nage, site, bmi\nage=18:90, bmi=ignore\n"
    run("draft", "t.csv", "--ask", "--estimate-ranges", "--epsilon", 1, typed=typed)
    written = (folder / "study.toml").read_text()
    assert 'site = { categories = "?" }' in written
    assert "[estimated]" not in written
    said = run("draft", "t.csv", "--ask", typed="A;B\n")
    assert "[1] Categorical covariates: site" in said
    study = cv.Study.from_toml("study.toml")
    assert study.covariates == {"age": cv.Range(18, 90), "site": cv.Categories(["A", "B"])}
    assert (study.control, study.randomised) == (0, False)
    assert run("draft", "t.csv", "--ask", typed="") == "CV-P722"


def test_one_line_describes_several_columns():
    group = ["age", "lab_1", "lab_2", "sex", "ill", "note"]
    text = "age=18:90, lab_*=0:10; sex=f,m ill=0=no,1=yes note=ignore"
    assert asking.described(text, group[:1], group) == {
        "age": ("18", "90"),
        "lab_1": ("0", "10"),
        "lab_2": ("0", "10"),
        "sex": ["f", "m"],
        "ill": "binary",
        "note": "ignore",
    }
    assert asking.described("0:1", group[1:3], group) == {"lab_1": ("0", "1"), "lab_2": ("0", "1")}
    for wrong in ("agee=18:90", "18-90", "age 18:90", "sex=f|m, agee=18:90", "0=no, age=18:90"):
        with pytest.raises(cv.CounterveilError, match="CV-P721"):
            asking.described(wrong, group, group)


def test_a_template_is_written_and_read_back(folder):
    said = run("draft", "t.csv", "--template", "blank.csv", "--treatment", "arm")
    assert "counterveil draft t.csv --codebook blank.csv" in said
    assert (folder / "blank.csv").read_text().splitlines()[:3] == [
        "name,role,kind,low,high,labels,unit,note",
        "id,ignored,,,,,,identifier",
        "arm,treatment,,,,,,",
    ]
    assert run("draft", "t.csv", "--template", "blank.csv") == "CV-P722"
    filled = "arm,treatment,,,,0;1\ny,outcome,numeric,0,9,\nage,covariate,numeric,18,90,\n"
    (folder / "blank.csv").write_text(f"name,role,kind,low,high,labels\n{filled}")
    run("draft", "t.csv", "--codebook", "blank.csv", "--assignment", "trial", "--out", "study.toml")
    assert list(cv.Study.from_toml("study.toml").covariates) == ["age"]


def test_check_lists_everything_and_returns_three(folder):
    run(*DRAFT, "--treatment", "arm", "--covariate", "all", "--labels", "site=A,C", "--out", "study.toml")
    said = run("check", "t.csv", "--study", "study.toml", code=3)
    assert "The data do not fit the study: 4 findings" in said
    assert "range = [LOW, HIGH]" in said
    assert 'site = { categories = ["A", "C", "LABEL"] }' in said
    assert "B: 400 rows" in run("check", "t.csv", "--study", "study.toml", "--show-labels", code=3)
    facts = json.loads(run("check", "t.csv", "--study", "study.toml", "--json", code=3))
    assert (facts["fits"], facts["rows"], len(facts["findings"])) == (False, None, 5)


def test_estimated_ranges_are_charged(folder):
    (folder / "access-policy.toml").write_text("public = []\n")
    place = ("l.db", "--dataset", "t", "--epsilon", 9, "--access-policy", "access-policy.toml")
    run("ledger", "create", *place)
    words = (*KNOWN[:8], "--estimate-ranges", "--epsilon", "8", "--ledger", "l.db", "--out", "study.toml")
    said = run(*DRAFT, *words)
    assert "remaining: epsilon 1 of epsilon 9" in " ".join(said.split())
    assert cv.Study.from_toml("study.toml").estimated["bmi"] == "range: epsilon 8"
    assert run(*DRAFT, *KNOWN[:8], "--estimate-ranges") == "CV-P723"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--treatment", "amr"), "CV-P721"),
        (("--outcome-range", "7"), "CV-P721"),
        (("--range", "bmi"), "CV-P721"),
        (("--where", "age >"), "CV-S121"),
        (("--codebook", "t.csv"), "CV-S126"),
    ],
)
def test_what_is_refused(folder, words, code):
    assert run("draft", "t.csv", *words) == code


def test_a_header_in_another_encoding_is_named_with_its_file(folder):
    (folder / "latin.csv").write_bytes("arm,y,caf\xe9\n0,1,2\n".encode("latin-1"))
    assert run("draft", "latin.csv") == "CV-D310"
    (folder / "study.toml").write_text('treatment = "arm"\noutcome = { column = "y", range = [0, 9] }\n')
    said = json.loads(run("check", "latin.csv", "--study", "study.toml", "--json", code=3))
    (finding,) = [one for one in said["findings"] if one["code"] == "CV-D310"]
    assert "'latin.csv'" in finding["what"]
    assert "iconv -f cp1252" in finding["mend"]
