"""Codebooks of every form, and files that are none."""

import json

import pytest

import counterveil as cv
from counterveil.drafting import Entry, read_codebook

HEADER = (
    "Variable / Field Name,Form Name,Section Header,Field Type,Field Label,"
    '"Choices, Calculations, OR Slider Labels",Field Note,Text Validation Type OR Show Slider Number,'
    "Text Validation Min,Text Validation Max,Identifier?\n"
)
REDCAP = f"""{HEADER}record_id,base,,text,Record,,,,,,y
arm,base,,radio,"Randomised <b>arm</b>","0, placebo | 1, drug, 5 mg",,,,,
age,base,,text,Age,,,integer,18,90,
bmi,base,,calc,BMI,"[w]/[h]^2",,,,,
site,base,,dropdown,Site,"A, Aachen | B, Bonn",,,,,
ill,base,,checkbox,Illness,"1, asthma | -9, none",,,,,
born,base,,text,Born,,,date_ymd,,,
notes,base,,notes,Notes,,,,,,
pain,base,,slider,Pain,,,,,,
smoker,base,,yesno,Smoker,,,,,,
hello,base,,descriptive,Hello,,,,,,
"""


@pytest.fixture
def written(tmp_path):
    def write(name, text):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return read_codebook(path)

    return write


def test_a_redcap_dictionary(written):
    found = written("dictionary.csv", "\ufeff" + REDCAP)
    assert found["arm"] == Entry("binary", labels=((0, "placebo"), (1, "drug, 5 mg")), title="Randomised arm")
    assert found["age"] == Entry("range", 18, 90, title="Age")
    assert found["bmi"] == Entry("range", title="BMI")
    assert found["site"].labels == (("A", "Aachen"), ("B", "Bonn"))
    assert found["ill___1"] == Entry("binary", title="Illness: asthma")
    assert "ill____9" in found
    assert [found[name].kind for name in ("record_id", "born", "notes", "smoker")] == [
        "identifier", "date", "text", "binary",
    ]  # fmt: skip
    assert (found["pain"].low, found["pain"].high) == (0, 100)
    assert "hello" not in found


def test_the_same_dictionary_as_the_interface_exports_it(written):
    header = "field_name,form_name,field_type,field_label,select_choices_or_calculations"
    text = f'{header}\nsex,base,radio,Sex,"1, m | 2, f"\n'
    assert written("export.csv", text)["sex"].labels == ((1, "m"), (2, "f"))


def test_a_plain_file(written):
    entries = ("age;range;18;90;;Age;covariate", "site;;;;A=Aachen|B;;", "id;identifier;;;;;")
    text = "\n".join(("name;kind;low;high;labels;title;role", *entries))
    found = written("plain.csv", text)
    assert found["age"] == Entry("range", 18, 90, title="Age", role="covariate")
    assert found["site"] == Entry("categories", labels=(("A", "Aachen"), ("B", "")))
    assert found["id"].kind == "identifier"


@pytest.mark.parametrize(
    "text", ["0=no; 1=yes", "0=no|1=yes", "0=no / 1=yes", '"0=no, 1=yes"', '"0=no\n1=yes"']
)
def test_labels_in_the_separators_people_use(written, text):
    found = written("plain.csv", f'name,role,kind,labels,unit,note\nill,id,yes/no,{text},days,"How long"\n')
    labels = ((0, "no"), (1, "yes"))
    assert found == {"ill": Entry("binary", labels=labels, title="How long (days)", role="person")}
    assert written("signs.csv", "name,labels\ndose,<=5;>5\n")["dose"].labels == (("<=5", ""), (">5", ""))


def test_a_table_schema_and_a_package(written):
    grades = [{"value": 1, "label": "low"}, {"value": 2, "label": "high"}]
    fields = [
        {"name": "id", "type": "integer"},
        {"name": "age", "type": "integer", "title": "Age", "constraints": {"minimum": 18, "maximum": 90.5}},
        {"name": "site", "type": "string", "constraints": {"enum": ["A", "B"]}},
        {"name": "grade", "type": "integer", "categories": grades},
        {"name": "smoker", "type": "boolean"},
        {"name": "day", "type": "date"},
        {"name": "word", "type": "string"},
    ]  # fmt: skip
    schema = {"fields": fields, "primaryKey": "id"}
    plain = written("schema.json", json.dumps(schema))
    assert plain == written("package.json", json.dumps({"resources": [{"name": "t", "schema": schema}]}))
    assert plain["age"] == Entry("range", 18, 90.5, title="Age")
    assert plain["grade"].labels == ((1, "low"), (2, "high"))
    assert {name: entry.kind for name, entry in plain.items()} == {
        "id": "identifier",
        "age": "range",
        "site": "categories",
        "grade": "categories",
        "smoker": "binary",
        "day": "date",
        "word": "categories",
    }


@pytest.mark.parametrize("ending", [".sav", ".dta"])
def test_labels_of_spss_and_stata_files_without_their_rows(tmp_path, ending):
    pyreadstat = pytest.importorskip("pyreadstat")
    import pandas as pd

    frame = pd.DataFrame({"sex": [1.0, 2.0], "age": [30.0, 40.0], "town": ["Bonn", "Aachen"]})
    labels = {
        "variable_value_labels": {"sex": {1: "male", 2: "female"}},
        "column_labels": ["Sex", "Age", "Town"],
    }
    path = tmp_path / f"people{ending}"
    (pyreadstat.write_sav if ending == ".sav" else pyreadstat.write_dta)(frame, str(path), **labels)
    found = read_codebook(path)
    assert found["sex"] == Entry("categories", labels=((1, "male"), (2, "female")), title="Sex")
    assert found["age"] == Entry("range", title="Age")
    assert found["town"] == Entry("categories", title="Town")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", ""),
        ("a.csv", "name,kind\n"),
        ("a.csv", "column a,column b\n1,2\n"),
        ("a.csv", "name,kind\nage,colour\n"),
        ("a.csv", "name,role\nage,king\n"),
        ("a.json", "{"),
        ("a.json", "[]"),
        ("a.json", '{"fields": 3}'),
        ("a.txt", "name,kind\nage,range\n"),
        ("a.dta", "no such thing"),
    ],
)
def test_what_is_no_codebook_is_refused(written, name, text):
    if name.endswith(".dta"):
        pytest.importorskip("pyreadstat")
    with pytest.raises(cv.CounterveilError, match="CV-S126"):
        written(name, text)


def test_without_the_extra_the_refusal_names_it(tmp_path, monkeypatch):
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(cv.CounterveilError, match="CV-E090"):
        read_codebook(tmp_path / "people.sav")
