"""The notebook of results runs, and every kind of result in it was shown as a table."""

import json
import os

import pytest

KINDS = {"Result", "GroupsResult", "CateModel", "CateAnswers", "PolicyValue", "TargetingCurve", "ArmsResult"}


def test_every_cell_runs_and_every_kind_of_result_shows_itself(root, monkeypatch):
    from IPython.core.interactiveshell import InteractiveShell

    monkeypatch.setenv("MPLBACKEND", "Agg")
    notebook = json.loads((root / "docs" / "tutorials" / "every-result.ipynb").read_text(encoding="utf-8"))
    shell = InteractiveShell()
    seen = set()
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        done = shell.run_cell("".join(cell["source"]))
        done.raise_error()
        assert all(output["output_type"] != "error" for output in cell["outputs"])
        formats, _ = shell.display_formatter.format(done.result)
        if "Effect of" in formats.get("text/html", ""):
            seen.add(type(done.result).__name__)
            assert any("<table" in "".join(o.get("data", {}).get("text/html", "")) for o in cell["outputs"])
    assert seen >= KINDS | {"PooledResult"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ab-test", "nhefs", "nhefs-like", "survival-gbsg2", "survival-rossi"])
def test_the_notebooks_of_users_run(root, tmp_path, monkeypatch, name):
    if name == "nhefs" and not os.environ.get("COUNTERVEIL_DATA"):
        pytest.skip("COUNTERVEIL_DATA does not name the folder of data sets")
    monkeypatch.chdir(tmp_path)
    notebook = json.loads((root / f"docs/tutorials/{name}.ipynb").read_text(encoding="utf-8"))
    exec("\n".join("".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"), {})
