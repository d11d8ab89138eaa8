"""What is public, as a snapshot; the core without extras; settings that refuse, and refusals that name their facts."""

import subprocess
import sys
import tomllib
from dataclasses import is_dataclass
from math import inf, nan
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from tests.command_line import asked

import counterveil
import counterveil as cv
from counterveil.data import Fill
from counterveil.errors import MissingExtraError, ParameterError

PUBLIC = [
    "Assumptions",
    "Binary",
    "Budget",
    "Categories",
    "Change",
    "Clusters",
    "CounterveilError",
    "Decision",
    "Drop",
    "Fill",
    "Observational",
    "Outcome",
    "Outcomes",
    "People",
    "Policy",
    "Propensity",
    "Range",
    "Ratio",
    "SeededNoise",
    "Session",
    "Study",
    "TimeToEvent",
    "Treatment",
    "Trial",
    "arms",
    "ate",
    "cate",
    "datasets",
    "drafting",
    "etable",
    "event_study",
    "groups",
    "interim",
    "methods",
    "moments",
    "omop",
    "open_ledger",
    "outcomes",
    "overlap",
    "plan",
    "plots",
    "policy_value",
    "pool",
    "published",
    "quantiles",
    "results",
    "settings",
    "survival",
    "targeting_curve",
]
SETTINGS = [
    "Arms",
    "Auto",
    "Cate",
    "DifferenceInMeans",
    "DoublyRobust",
    "Folds",
    "Groups",
    "Matching",
    "ModelPair",
    "Series",
    "Stratified",
    "Survival",
    "Trial",
    "WeightLimits",
    "Weighting",
]


def test_public_names_are_these():
    assert sorted(counterveil.__all__) == sorted(PUBLIC)


def test_settings_are_these_and_none_is_on_the_top_level():
    assert sorted(counterveil.settings.__all__) == SETTINGS
    for name in SETTINGS:
        assert is_dataclass(getattr(counterveil.settings, name))
        # A trial is also how treatment was assigned, which is no setting of a method.
        assert getattr(counterveil, name, None) is not getattr(counterveil.settings, name)


def test_every_public_name_loads():
    for name in counterveil.__all__:
        assert getattr(counterveil, name) is not None
        assert name in dir(counterveil)


def test_import_is_light():
    heavy = "numpy|scipy|duckdb|flint|pandas|matplotlib|typer"
    code = f"import sys, counterveil; print([name for name in '{heavy}'.split('|') if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_a_small_estimate_loads_neither_published_forms_nor_what_it_does_not_compute_with():
    code = """
import sys, counterveil as cv
trial = {"t": [0, 1] * 20, "y": [0, 1, 1, 1] * 10}
study = cv.Study(treatment="t", outcome=cv.Outcome("y", (0, 1)), assignment=cv.Trial())
cv.ate(trial, study, protects="outcome", epsilon=1, noise=cv.SeededNoise(1)).interval()
heavy = "counterveil.published|scipy.stats|scipy.optimize|pandas|narwhals|duckdb|matplotlib"
print([name for name in heavy.split("|") if name in sys.modules])
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_a_file_is_estimated_and_checked_without_what_the_command_does_not_need(tmp_path):
    """Neither command loads pandas or another question; a check needs no linear algebra either."""
    (tmp_path / "rows.csv").write_text("t,y\n" + "0,1\n1,\n" * 20)
    study = counterveil.Study("t", cv.Outcome("y", (0, 1)), assignment=cv.Trial(), missing={"y": Fill(0)})
    (tmp_path / "study.toml").write_text(study.to_toml())
    code = """
import contextlib, io, sys
from counterveil.cli import main
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
    main()
print([name for name in ("numpy", "duckdb", "scipy", "pandas", "counterveil.questions.cate") if name in sys.modules])
"""
    for words, loaded in (
        (["estimate", "--protects", "record", "--epsilon", "1"], "['numpy', 'duckdb', 'scipy']"),
        (["check"], "['numpy', 'duckdb']"),
    ):
        command = [sys.executable, "-c", code, words[0], "rows.csv", "--study", "study.toml", *words[1:]]
        run = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
        assert run.stdout.splitlines()[-1] == loaded, run.stderr


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="nothing"):
        _ = counterveil.nothing


EXTRAS = (
    "psycopg",
    "pandas",
    "polars",
    "pyarrow",
    "pyreadstat",
    "ibis",
    "pyspark",
    "flwr",
    "cryptography",
    "sklearn",
    "matplotlib",
    "starlette",
    "jinja2",
    "uvicorn",
    "counterveil_lab",
)
PROGRAM = """
import sys
import tomllib
for name in sys.argv[1:]:
    sys.modules[name] = None  # importing it fails as if it were not installed
import numpy as np
import counterveil as cv
from counterveil.cli import main
study = cv.Study(treatment="t", outcome=cv.Outcome("y", (0, 1)), assignment=cv.Trial())
rows = {"t": np.arange(40) % 2, "y": np.arange(40) % 3 / 2}
print(cv.ate(rows, study, protects="outcome", epsilon=1))
print(cv.ate(rows, study, protects="record", epsilon=1))
cv.cate, cv.plan, cv.pool, cv.plots, cv.published, cv.results, cv.settings
"""


def test_effects_and_the_command_line_load_without_any_extra():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *EXTRAS],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Guarantee:") == 2


CONSOLE = ("starlette", "jinja2", "uvicorn")
PAGES = """
import sys
import tomllib
for name in sys.argv[2:]:
    sys.modules[name] = None  # importing it fails as if it were not installed
from pathlib import Path
from counterveil.console.application import PAGES, Console
from counterveil.console.server import server_of
from counterveil.console.visit import Sessions, SignedIn
from counterveil.console.workspace import Workspace
from tests.unit.console.visitor import PLACE, Visitor
sessions = Sessions()
console = Console(Workspace(Path(sys.argv[1])), sessions, PLACE)
server_of(console)
visitor = Visitor(console.application(), sessions, SignedIn("ada", steward=True))
pages = [pattern for method, pattern, _ in PAGES if method == "GET" and "{" not in pattern]
print({page: visitor.get(page).status_code for page in pages})
print(visitor.get("/federation").text)
"""


def test_the_console_runs_with_the_packages_of_its_extra_alone(tmp_path):
    """A study of several sites is listed with what it needs; every other page works."""
    pytest.importorskip("starlette", reason="the extra console is not installed")
    (tmp_path / "study").mkdir()
    for name in ("study.toml", "declaration.toml"):
        (tmp_path / "study" / name).write_text("")
    others = [name for name in EXTRAS if name not in CONSOLE]
    done = subprocess.run(
        [sys.executable, "-c", PAGES, str(tmp_path), *others],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    statuses, federation = done.stdout.split("\n", 1)
    assert statuses.count(": 200") == statuses.count(":") >= 6, statuses
    assert "CV-E060" in federation


def test_the_console_s_server_is_not_one_with_known_holes():
    """CVE-2026-48710 and CVE-2026-54283 are mended in starlette 1.3.1, which Flower's pin admits."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    wanted = {
        one.name: one.specifier for one in map(Requirement, project["optional-dependencies"]["console"])
    }
    assert not any(wanted["starlette"].contains(version) for version in ("1.0", "1.2.9", "1.3.0"))
    assert wanted["starlette"].contains("1.3.1")


@pytest.mark.parametrize(
    "words", [("audit", "--all"), ("audit", "matching"), ("audit", "--gallery"), ("reproduce", "--list")]
)
def test_commands_of_the_laboratory_name_the_package_they_need(words, monkeypatch):
    monkeypatch.setitem(sys.modules, "counterveil_lab", None)
    found = asked(*words).exception
    assert isinstance(found, MissingExtraError)
    assert found.code == "CV-E100"
    assert "counterveil-lab" in found.expected
    assert found.fix.endswith("pip install ./lab")


ODD = (
    -1,
    -0.1,
    0,
    0.5,
    1,
    1.5,
    2,
    2.5,
    5,
    7.0,
    10**400,
    inf,
    nan,
    True,
    None,
    "much",
    b"1",
    (),
    (0,),
    {"a": -1},
    object(),
)
CASES = [
    (getattr(cv.settings, name), field, allowed)
    for name in cv.settings.__all__
    for field, allowed in getattr(getattr(cv.settings, name), "_allowed", {}).items()
]


@pytest.mark.parametrize(
    ("settings", "field", "allowed"), CASES, ids=lambda case: case if isinstance(case, str) else ""
)
def test_a_value_outside_its_range_is_refused(settings, field, allowed):
    outside = [value for value in ODD if not allowed.fits(value)]
    assert outside
    for value in outside:
        with pytest.raises(ParameterError, match=f"setting {field} ") as refused:
            settings(**{field: value})
        assert refused.value.code == "CV-P025"


# A value next to each range that other computations rely on, and values that do not go together.
WRONG = {
    "Arms": [{"neighbours": 0}, {"bias": -1}],
    "Auto": [{"kappa": 0}, {"kappa": 1.5}],
    "Cate": [{"basis": "wavelet"}, {"degree": 0}, {"knots": 0}, {"products": 1}],
    "DifferenceInMeans": [{"variance_share": 1}, {"variance_share": -0.1}],
    "DoublyRobust": [{"degree": 3}, {"kappa": 0}, {"kappa": 1.5}],
    "Folds": [{"folds": 2}, {"folds": 2.5}, {"bound": 0}, {"learner": "forest"}, {"learner": 3}, {"learner": None}],
    "Groups": [{"clip": 0}],
    "Matching": [{"neighbours": 0}, {"limit": 0}, {"limit": "many"}, {"c": nan}, {"variance_by": "pair"}],
    "Stratified": [{"limit": 1}, {"cuts": {"x": 1}}],
    "Trial": [{"adjustment": "moments"}, {"centre": "median"}, {"centre": "arms"}],
    "WeightLimits": [{"max_weight": 0}, {"max_weight": 1.5}, {"own": {"a": -1}}, {"min_variance": {"a": nan}}],
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_values_next_to_a_range_or_that_do_not_go_together_are_refused(name):
    for wrong in WRONG[name]:
        with pytest.raises(ParameterError, match="CV-P025"):
            getattr(cv.settings, name)(**wrong)
