"""What an interval depends on is said before any number, in every rendering."""

from dataclasses import replace

import numpy as np
import pytest

import counterveil as cv
from counterveil.privacy.caveats import KeptPeople, LinearScores, NotAdjusted, Target
from counterveil.report.caveats import first_words

LINEAR, BOUND = LinearScores(inverse=True, squares=False, products=False), NotAdjusted(0.1)


@pytest.mark.parametrize(
    ("given", "first"),
    [
        ({}, []),
        ({"assumptions": LINEAR}, ["MODELS ASSUMED"]),
        ({"assumptions": LINEAR, "condition": BOUND}, ["NOT ADJUSTED"]),
        ({"assumptions": LINEAR, "interval_target": Target.ONE_FOLD}, ["NO VALID INTERVAL FOR THE EFFECT"]),
        ({"assumptions": LINEAR, "population": KeptPeople(5, 9, 0.1)}, ["TRIMMED", "MODELS ASSUMED"]),
    ],
)
def test_the_gravest_is_said_first(given, first):
    said = first_words(**{"interval_target": None} | given)
    names = ("TRIMMED", "NO VALID INTERVAL FOR THE EFFECT", "NOT ADJUSTED", "MODELS ASSUMED")
    assert [name for name in names if name in (said or "")] == first
    assert (said is None) == (not first)


@pytest.fixture(scope="module")
def answers():
    """Return adjusted answers: of an observational study and of a trial."""
    rng = np.random.default_rng(4)
    x, t = rng.uniform(size=(1500, 2)), rng.integers(0, 2, 1500)
    frame = {
        "a": x[:, 0],
        "b": x[:, 1],
        "t": t,
        "y": np.clip(x[:, 0] + 0.2 * t + 0.1 * rng.normal(size=1500), 0, 2),
    }
    study = cv.Study(
        "t", "y", (0, 2), {"a": cv.Range(0, 1), "b": cv.Range(0, 1)}, control=0, randomised=False
    )
    asked = {"study": (study, None), "trial": (replace(study, randomised=True), None)}
    given = {"protects": "record", "epsilon": 8, "delta": 1e-6, "method": "doubly_robust"}
    return {
        name: cv.ate(frame, declared, settings=settings, noise=cv.SeededNoise(1), **given)
        for name, (declared, settings) in asked.items()
    }


def test_models_are_said_in_every_rendering(answers):
    found = answers["study"]
    assert isinstance(found.assumptions, LinearScores)
    assert found.assumptions.inverse
    assert found.assumptions.squares
    said = found.warning
    assert "MODELS ASSUMED" in " ".join(str(found).split()[:12])
    assert "; MODELS ASSUMED; " in repr(found)
    assert said in found.write_up()
    assert said in found.to_latex().splitlines()[1]
    assert found.tidy()[0]["assumptions"] in said
    assert found.to_dict()["warning"] == said
    again = type(found).from_dict(found.to_dict())
    assert again == found
    assert again.warning == said


def test_a_trial_rests_on_no_model(answers):
    assert answers["trial"].assumptions is None
    assert answers["trial"].warning is None
    assert "assumptions" not in answers["trial"].tidy()[0]
