"""A study as a table of columns: every declaration survives it, and labels are read as people write them."""

import tomllib

import pytest
from tests.thinned import thinned
from tests.unit.console.visitor import code_of, words

import counterveil as cv
from counterveil.console import application
from counterveil.console.columns import form_of, text_of

OUTCOME = '[outcome]\ncolumn = "y"\nrange = [0, 9]\n'
ARMS = OUTCOME + '[treatment]\ncolumn = "arm"\narms = ["a", "b", "c"]\nreference = "b"\n'
PLAIN = 'assignment = "observational"\n[treatment]\ncolumn = "arm"\ntreated = "drug"\ncontrol = "none"\n'
PEOPLE = 'where = "age >= 18"\n' + PLAIN + 'others = "drop"\n[outcome]\ncolumn = "pain"\nrange = [0, 10]\n'
STUDIES = [
    ARMS,
    PLAIN + '[outcome.ranges]\ny = [0, 1]  # the first, "primary"\nz = [0.5, 2]\n[outcome.baseline]\ny = "y0"\n',
    PLAIN + '[outcome]\ntime = "days"\nevent = "died"\nhorizon = 360\ngrid = 12\n',
    PLAIN + OUTCOME + 'before = "y0"\nbefore_range = [0, 8]\nchange_range = [-5, 5]\n',
    PLAIN + '[outcome]\nnumerator = "y"\nrange = [0, 9]\ndenominator = "n"\ndenominator_range = [1, 8]\n',
    PEOPLE + '[people]\ncolumn = "id"\norder = "day"\nmax_rows = 6\nrules = { pain = "last" }\n'
    '[covariates]\nage = { range = [18, 90], cuts = [30] }\nsite = { categories = ["n", "s; t"], other = "n" }\n'
    'smokes = { binary = { one = "yes", zero = "no" } }\n[missing]\nage = { fill = 50 }\nsite = "drop"\n',
    PEOPLE + '[clusters]\ncolumn = "school"\nprotected = true\nrules = { pain = "mean" }\n',
    'missing = "drop"\n' + PEOPLE + '[clusters]\ncolumn = "school"\nassigned = true\n',
    'people = "id"\n' + PLAIN + OUTCOME + 'before = [1]\ntime = "q"\nafter = [2]\n',
    OUTCOME + '[treatment]\ncolumn = "dose"\narms = { range = [0, 10], cuts = [2, 5] }\n',
    OUTCOME + '[assignment]\npropensity = "p"\n[covariates]\np = { range = [0.1, 0.9] }\n[treatment]\ncolumn = "t"\n',
    OUTCOME + '[assignment]\nshare = 0.5\n[treatment]\ncolumn = "t"\n',
]  # fmt: skip


@pytest.mark.parametrize("text", STUDIES)
def test_a_table_says_what_the_study_file_said(text):
    document = tomllib.loads(text)
    form = form_of(text, document)
    again = text_of(form, document, text)
    saved = tomllib.loads(again)
    assert cv.Study.from_dict(saved) == cv.Study.from_dict(document)
    assert text_of(form_of(again, saved), saved, again) == again
    assert ('  # the first, "primary"' in again) == ("primary" in text)


@pytest.mark.parametrize("labels", ["north; south", "north|south", "north, south", 'north;"south"'])
def test_labels_are_separated_as_people_write_them(steward, folder, labels):
    steward.fill("/studies/primary", "/studies/primary", {"site": {"labels": labels}})
    assert cv.Study.from_toml(folder / "studies" / "primary.toml").covariates["site"].labels == (
        "north",
        "south",
    )


def test_what_is_open_stands_first_and_what_was_typed_is_kept(steward, folder):
    page = steward.fill("/studies/primary", "/studies/primary", {"age": {"low": "18 years"}})
    first = page.text.split("<tbody>")[1].split("</tr>")[0]
    assert 'value="18 years"' in first
    assert 'class="needs"' in first
    assert "1 open question or fault" in words(page)
    assert code_of(page).startswith("CV-S")


def test_arms_outcomes_and_survival_are_planned_and_asked(steward, folder, monkeypatch):
    monkeypatch.setattr(application, "_STOPPED", ())
    (folder / "studies" / "primary.toml").unlink()
    rows = [f"{'abc'[n % 3]},{n % 2},{n % 7},{n % 5},{n % 2},{1 + n % 9}" for n in range(120)]
    (folder / "trial.csv").write_text("\n".join(["arm,two,y,z,died,days", *rows]) + "\n")
    tables = {
        "arms": {
            "arm": {"role": "treatment", "labels": "a; b; c"},
            "y": {"role": "outcome", "low": "0", "high": "6"},
        },
        "outcomes": {
            "two": {"role": "treatment"},
            "y": {"role": "outcome", "low": "0", "high": "6"},
            "z": {"role": "primary", "low": "0", "high": "4"},
        },
        "survival": {
            "two": {"role": "treatment"},
            "days": {"role": "outcome", "high": "9"},
            "died": {"role": "event"},
        },
    }
    for name, table in tables.items():
        steward.post("/studies/new?source=trial", "/studies/new", name=name)
        page = steward.fill(
            f"/studies/{name}", f"/studies/{name}", table, assignment="trial", control="a" * (name == "arms")
        )
        assert "Nothing is open" in words(page), name
        planned = steward.post(
            f"/studies/{name}/plan", f"/studies/{name}/plan", rows="120", epsilons="1", draws="1"
        )
        assert "outcomes only" in words(planned).partition("Plan for")[2], name
    key = steward.register(access_policy='public = ["arm", "two"]\n', epsilon="30")
    for name in tables:
        done = steward.ask(key, study=name, question=name, protects="outcome", method="auto", epsilon="5")
        assert done.status_code == 200, words(done)
        assert "epsilon 5" in words(done)
    done = steward.ask(key, study="outcomes", question="moments", protects="record", method="", epsilon="10")
    # Regressions from what was released cost nothing.
    assert "z ~ two" in done.text
    free = steward.get(f"{done.url}?formula=y+~+two+%2B+z")
    assert "Coefficients" in free.text
    assert "epsilon 5 left" in words(steward.get("/"))
    assert code_of(steward.get(f"{done.url}?formula=y+~+absent")) == "CV-P784"


METRICS = {f"m{place}": {"role": "outcome", "kind": "binary"} for place in range(30)}
HARDER = {
    "outcomes": {"arm": {"role": "treatment", "labels": "a; b; c"}, **METRICS},
    "ate": {
        "who": {"role": "person", "high": "2"},
        "visit": {"role": "order"},
        "two": {"role": "treatment"},
        "m1": {"role": "outcome", "kind": "binary"},
    },
}


@pytest.mark.parametrize("question", thinned(HARDER, "ate"))
def test_thirty_metrics_of_three_arms_and_people_with_several_rows(steward, folder, question):
    (folder / "studies" / "primary.toml").unlink()
    rows = [f"{'abc'[n % 3]},{n % 2},{n % 60},{n // 60}" + f",{n % 2}" * 30 for n in range(120)]
    head = ",".join(["arm", "two", "who", "visit", *METRICS])
    (folder / "trial.csv").write_text("\n".join([head, *rows]) + "\n")
    steward.post("/studies/new?source=trial", "/studies/new", name="primary")
    first = "a" if question == "outcomes" else "0"
    page = steward.fill(
        "/studies/primary", "/studies/primary", HARDER[question], assignment="trial", control=first
    )
    assert "Nothing is open" in words(page)
    key = steward.register()
    done = steward.ask(key, question=question, protects="outcome", method="auto", epsilon="2")
    assert "For a paper" in words(done), words(done)
