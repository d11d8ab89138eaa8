"""Pages that come with the package: error codes and proofs."""

import pytest
from typer.testing import CliRunner

import counterveil as cv
from counterveil.cli.app import app


def say(*words):
    return CliRunner().invoke(app, ["explain", *words])


def test_an_error_names_the_command_that_shows_its_page():
    with pytest.raises(cv.CounterveilError) as caught:
        cv.Budget(-1)
    command = caught.value.text().splitlines()[-1].split("counterveil ")[1]
    shown = CliRunner().invoke(app, command.split()).output
    assert shown.startswith(f"# {caught.value.code}: ")
    assert f"To fix: {caught.value.fix}" in shown


def test_every_proof_that_a_result_names_is_shown():
    rows = {"t": [0, 1] * 20, "y": [0, 1, 1, 0] * 10}
    declared = cv.Study(treatment="t", outcome="y", outcome_range=(0, 1), randomised=True)
    result = cv.ate(rows, declared, protects="record", epsilon=1, noise=cv.SeededNoise(1))
    assert result.guarantee.pages
    for page in result.guarantee.pages:
        assert say(page).output.startswith("# ")
    listed = say().output.split()
    assert set(result.guarantee.pages) <= set(listed)
    assert say("laplace").output == say("mechanisms/laplace.proof.md").output


@pytest.mark.parametrize("name", ["CV-P999", "nothing", "../secrets"])
def test_what_has_no_page_is_refused(name):
    found = say(name)
    assert found.exit_code != 0
    assert found.exception.code == "CV-P024"
