"""What editors show of public names: full signatures and docstrings, in jedi and in pyright."""

import inspect
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import counterveil as cv

jedi = pytest.importorskip("jedi", reason="jedi is not installed")

ROOT = Path(__file__).resolve().parents[2]
QUESTIONS = sorted(name for name in cv.__all__ if inspect.isfunction(getattr(cv, name)))
METHODS = sorted(
    name for name, member in vars(cv.Session).items() if inspect.isfunction(member) and name[0] != "_"
)
LOOKS = ("look", "planned", "sequence")
CALLS = {f"cv.{name}": getattr(cv, name) for name in QUESTIONS}
CALLS |= {f"cv.Session.{name}": getattr(cv.Session, name) for name in METHODS}
CALLS |= {f"cv.interim.{name}": getattr(cv.interim, name) for name in LOOKS}
# Everything else that users call by name, classes too.
SPACES = ("", "datasets.", "drafting.", "omop.", "plots.", "published.", "settings.")
OTHERS = {
    f"cv.{space}{name}": getattr(owner, name)
    for space, owner in ((space, getattr(cv, space[:-1]) if space else cv) for space in SPACES)
    for name in owner.__all__
    if callable(getattr(owner, name)) and f"cv.{space}{name}" not in CALLS
}
# A checker that takes formulas and studies, and refuses a name that is none.
PROGRAM = """import counterveil as cv

data = cv.datasets.simulated_trial(n=100, effect=0.1)
cv.ate(data.frame, data.study, protects="outcome", epsilon=1)
cv.ate("y ~ treated | x", data.frame, {"y": (0, 1), "x": (0, 1)}, protects="outcome", epsilon=1)
cv.ate(data.frame, data.study, protects="outcome", epsilom=1)
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    # Processes that share a cache read what another has half written.
    jedi.settings.cache_directory = str(tmp_path_factory.mktemp("jedi"))
    return jedi.Project(ROOT, added_sys_path=[str(ROOT / "src")])


@pytest.mark.parametrize("call", CALLS)
def test_jedi_shows_the_signature_and_the_docstring(call, project):
    function = CALLS[call]
    script = jedi.Script(f"import counterveil as cv\n{call}(", project=project)
    (shown,) = script.get_signatures(2, len(call) + 1)
    assert [each.name for each in shown.params] == list(inspect.signature(function).parameters)
    assert inspect.getdoc(function) in shown.docstring()
    (home,) = script.goto(2, len(call) - 1, follow_imports=True)
    assert home.module_path == Path(inspect.getsourcefile(inspect.unwrap(function)))


@pytest.mark.parametrize("call", OTHERS)
def test_jedi_shows_what_other_public_names_take(call, project):
    (shown,) = jedi.Script(f"import counterveil as cv\n{call}(", project=project).get_signatures(
        2, len(call) + 1
    )
    taken = list(inspect.signature(OTHERS[call]).parameters)
    if taken != ["args", "kwargs"]:
        assert [each.name for each in shown.params] == taken
    assert inspect.getdoc(OTHERS[call]).partition("\n")[0] in shown.docstring()


def checked(text, folder):
    """Return what the type checker says of a program."""
    checker = Path(sys.executable).with_name("basedpyright")
    found = str(checker) if checker.exists() else shutil.which("basedpyright")
    if found is None:
        pytest.skip("basedpyright is not installed")
    (folder / "program.py").write_text(text)
    settings = {"extraPaths": [str(ROOT / "src")], "typeCheckingMode": "basic"}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    told = subprocess.run(
        [found, "--outputjson", "--project", str(folder), "--pythonpath", sys.executable],
        capture_output=True,
        text=True,
        check=False,
    )
    return json.loads(told.stdout)["generalDiagnostics"]


def test_pyright_names_every_parameter_and_refuses_others(tmp_path):
    told = checked(PROGRAM + "".join(f"reveal_type({call})\n" for call in CALLS), tmp_path)
    types = [one["message"] for one in told if one["message"].startswith("Type of")]
    assert len(types) == len(CALLS)
    for (call, function), text in zip(CALLS.items(), types, strict=True):
        for name in inspect.signature(function).parameters:
            assert f"{name}:" in text, call
    errors = {one["range"]["start"]["line"] + 1: one["message"] for one in told if one["severity"] == "error"}
    assert set(errors) == {6}
