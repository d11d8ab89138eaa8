"""Conditions, codebooks, drafts, and checks of broken study files beside data with planted values."""

from __future__ import annotations

import json
import random
from pathlib import Path

from tools.fuzzing import nasty, trials
from tools.fuzzing.judging import SECRET, Answer, Attempt, BrokenRuleError

import counterveil as cv
from counterveil.data import Table
from counterveil.data.conditions import Where

_CONDITIONS = (
    "18 <= age < 65 and site in ['north', 'south']",
    "not (smoker == 1) or (age is missing and arm != 0)",
    "`a column` not in ('it''s', 2.5, true)",
)
_REDCAP = (
    "Variable / Field Name,Field Type,Field Label,Choices,Text Validation Type OR Show Slider Number,"
    "Text Validation Min,Text Validation Max,Identifier?\n"
    'arm,radio,Arm,"0, usual | 1, new",,,,\nage,text,Age,,integer,18,90,\nscore,text,Score,,number,-3,5,\n'
    "smoker,yesno,Smoker,,,,,\nid,text,Id,,,,,y\n"
)
_PLAIN = "name,kind,low,high,labels\narm,binary,,,\nage,range,18,90,\nsite,categories,,,north|south|east\n"
_SCHEMA = json.dumps(
    {
        "fields": [
            {"name": "age", "type": "integer", "constraints": {"minimum": 18, "maximum": 90}},
            {"name": "site", "type": "string", "constraints": {"enum": ["north", "south"]}},
            {"name": "smoker", "type": "boolean"},
        ],
        "primaryKey": "id",
    }
)
_BOOKS = {"book.csv": (_REDCAP, _PLAIN), "book.json": (_SCHEMA,)}


def make(rng: random.Random, folder: Path) -> Attempt:
    """Return the reading of a broken condition or codebook, or the check of a broken study file."""
    kind = rng.random()
    if kind < 0.35:
        text = nasty.broken_text(rng, rng.choice(_CONDITIONS))
        people = trials.people(rng, 16)
        return lambda: _chosen(text, people)
    if kind < 0.7:
        name = rng.choice(sorted(_BOOKS))
        path = folder / name
        _write(path, nasty.broken_text(rng, rng.choice(_BOOKS[name])))
        return lambda: _drafted(path)
    path = folder / "study.toml"
    _write(path, nasty.broken_text(rng, trials.STUDY.to_toml()))
    people = trials.people(rng, 40)
    return lambda: Answer([str(each.to_dict()) for each in cv.drafting.check(people, path)])


def _write(path: Path, text: str) -> None:
    path.write_bytes(text.encode("utf-8", "surrogatepass"))


def _chosen(text: str, people: dict[str, list[object]]) -> Answer:
    """Return the texts of a study with a condition; written and read again it is the same."""
    where = Where.of(text)
    if Where.of(where.text) != where:
        raise BrokenRuleError("a condition that is not read back as it was written")
    study = cv.Study.from_dict(trials.STUDY.to_dict() | {"where": text})
    return Answer([str(study), str(Table.attach(people, study))])


def _drafted(path: Path) -> Answer:
    """Return the texts of a draft, which are those of a study or say what is open."""
    answers = {"treatment": "arm", "outcome": "score", "covariates": "all"}
    made = cv.drafting.draft(["id", *trials.COLUMNS], path, answers)
    if set(made.places) != {"id", *trials.COLUMNS}:
        raise BrokenRuleError("a column without a place")
    # A draft repeats the labels and titles of its codebook as they are; messages about it mask passwords.
    return Answer([made.toml.replace(SECRET, ""), *(str(each.to_dict()) for each in made.open_questions)])
