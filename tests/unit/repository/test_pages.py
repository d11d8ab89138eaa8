"""What is generated agrees with the code: architecture, bounds, reference, site, release, notebook, long tests."""

import json
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from tools.reference.__main__ import ROOT, drift, made, main
from tools.reference.cli_page import cli_page
from tools.release import differences, versions
from tools.site.contents import SECTIONS, sections
from tools.site.gather import gathered
from tools.site.generated import AUDITS, generated, without_audits
from tools.site.names import INDEX, index, listed, with_pages
from tools.site.outputs import with_outputs

from counterveil import errors


def test_the_picture_of_the_folders_is_that_of_the_contracts(root):
    text = (root / "ARCHITECTURE.md").read_text(encoding="utf-8")
    picture = next(block for block in re.findall(r"```\n(.*?)```", text, re.S) if "federation |" in block)
    contracts = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(one["layers"] for one in contracts if one["name"].startswith("imports point one way"))
    assert picture.split("\n")[:-1] == [line.replace("counterveil.", "") for line in layers]


def test_the_table_of_folders_names_each_of_them(root):
    text = (root / "ARCHITECTURE.md").read_text(encoding="utf-8")
    folders = {path.parent.name for path in (root / "src/counterveil").glob("*/__init__.py")}
    named = set(re.findall(r"^\| `(\w+)`", text, re.M)) | {"cli", "datasets", "settings"}
    assert folders <= named
    assert named - {"errors"} <= folders


def test_pages_show_the_statements_and_no_others(tool, root):
    check = tool("check_bounds")
    assert check.problems(root) == []
    assert len(check.statements(root)) >= 12


def test_a_statement_that_its_page_does_not_show_is_found(tool, root, tmp_path):
    check = tool("check_bounds")
    name = "difference_in_means"
    page = f"src/counterveil/rows/linear/{name}.proof.md"
    for folder in ("tests/bounds", "src/counterveil/rows/linear"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(root / page, tmp_path / page)
    statement = (root / f"tests/bounds/{name}.smt2").read_text()
    (tmp_path / f"tests/bounds/{name}.smt2").write_text(statement.replace("99/100", "98/100"))
    assert [line.split(":")[0] for line in check.problems(tmp_path)] == [page]


def test_every_statement_is_proved_and_a_wrong_constant_refuted(tool, root):
    pytest.importorskip("z3", reason="z3-solver is not installed: pip install 'counterveil[test]'")
    assert list(tool("check_bounds").failures(root)) == []


def test_the_pages_are_what_the_code_says(capsys):
    assert drift() == []
    assert main(["--check"]) == 0
    assert "in order" in capsys.readouterr().out


@pytest.fixture
def copy(tmp_path):
    for name in made():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_code_that_changed_is_noticed(copy, monkeypatch, capsys):
    monkeypatch.setattr(errors.LedgerError, "exit_code", 77)
    assert any(line.startswith("+| 77 ") for line in drift(copy))
    assert main(["--check"]) == 1
    assert "run: make reference" in capsys.readouterr().out


def test_a_line_that_the_code_does_not_say_is_noticed(copy):
    page = copy / "docs/reference/backends.md"
    page.write_text(page.read_text(encoding="utf-8") + "## Another\n", encoding="utf-8")
    assert "-## Another" in drift(copy)


def test_the_page_of_errors_has_every_code_of_the_table_once_with_its_texts(site):
    page = site["reference/errors.md"].decode()
    codes = {code[:7] for code in errors.refusals()}
    assert sorted(re.findall(r"^### (CV-[A-Z]\d+)$", page, re.M)) == sorted(codes)
    why = errors.refusals()["CV-C010"]["why"]
    assert why in page.partition("### CV-C010")[2].partition("###")[0]


def test_an_audit_that_breaks_a_claim_leaves_no_page(tmp_path, monkeypatch):
    def fails(words, check, stdout):
        Path(words[-1]).write_text("# Broken\n", encoding="utf-8")
        raise subprocess.CalledProcessError(1, words)

    monkeypatch.setattr(subprocess, "run", fails)
    with pytest.raises(subprocess.CalledProcessError):
        generated(tmp_path)
    assert [*tmp_path.glob("*.md")] == []


def test_audits_that_were_kept_are_not_run_again(tmp_path):
    for name in AUDITS:
        (tmp_path / Path(name).name).write_text(f"# {name}\n", encoding="utf-8")
    assert {name: generated(tmp_path)[name] for name in AUDITS} == {name: f"# {name}\n" for name in AUDITS}


def test_the_list_of_the_api_names_everything_public_once(root):
    names = listed((root / INDEX).read_text(encoding="utf-8"))
    assert sorted(names) == sorted(with_pages())


def test_every_public_name_has_a_page_made_of_its_docstring(site, root):
    pages = {page for page in site if page.startswith("reference/api/")}
    assert pages == {f"reference/api/{name}.rst" for name in with_pages()}
    assert ".. autofunction:: cv.ate\n" in site["reference/api/cv.ate.rst"].decode()
    session = site["reference/api/cv.Session.rst"].decode()
    assert ".. autoclass:: cv.Session\n   :members: " in session
    assert " survival," in session
    assert " reserve" not in session
    shown = site["reference/api.md"].decode()
    assert shown.count(".. autosummary::") == shown.count("```{toctree}") >= 8
    assert "\n   cv.settings.Auto\n" in shown
    assert "\n   ~counterveil.questions.plan.plan.Plan\n" in shown
    assert index("Prose with `cv.ate`.\n") == "Prose with `cv.ate`.\n"


def test_a_link_to_the_list_leads_to_the_page_of_the_name_that_it_shows(site):
    text = site["how-to/weight.md"].decode()
    assert "[`cv.settings.Weighting(features=...)`](../reference/api/cv.settings.Weighting.rst)" in text


def test_every_exit_code_is_listed():
    page = cli_page().partition("## Exit codes")[2]
    for kind in errors.CounterveilError.__subclasses__():
        assert f"| {kind.exit_code} | " in page, kind
    assert "`CV-C...`" in page


@pytest.fixture(scope="module")
def site(root):
    return gathered(root, without_audits())


def test_every_proof_and_every_experiment_has_its_place(site, root):
    found = sum(1 for _ in (root / "src/counterveil").glob("**/*.proof.md"))
    assert found == sum(page.startswith("proofs/") for page in site) - 1 > 50
    assert {"index.md", "project/architecture.md", "experiments/coverage/RESULTS.md"} <= set(site)


def test_the_list_of_documents_names_every_page_of_its_folders(root):
    listed = sections((root / "docs/README.md").read_text(encoding="utf-8"))
    for section, (folder, _) in SECTIONS.items():
        there = {f"docs/{folder}/{p.name}" for p in (root / "docs" / folder).glob("*.[im]*")}
        assert there <= set(listed[section].pages), section


def test_every_link_leads_to_a_page_of_the_site(site):
    for page, content in site.items():
        if not page.endswith(".md"):
            continue
        for target in re.findall(r"\]\(([^):#\s]+\.md)", content.decode()):
            parts = page.split("/")[:-1]
            for piece in target.split("/"):
                parts = parts[:-1] if piece == ".." else [*parts, piece]
            assert "/".join(parts) in site, f"{page}: {target}"
    sections = re.findall(r"^[a-z-]+/index$", site["index.md"].decode(), re.MULTILINE)
    assert sections
    assert {f"{name}.md" for name in sections} <= set(site)


PAGE = "# Title\n\n```python\nx = 2\nx + 1\n```\n\n<!-- output -->\n\n```text\nold\n```\n\n```sh\nls\n```\n"


def test_outputs_are_those_of_a_run():
    assert with_outputs(PAGE) == PAGE.replace("old", "3")
    empty = PAGE.replace("old\n", "")
    assert with_outputs(empty) == PAGE.replace("old", "3")


RELEASE_ROOT = Path(__file__).resolve().parents[3]
PINNED = re.compile(r"[\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")


def test_files_name_one_version(root):
    assert len(versions(root)) == 1


def test_every_action_is_pinned_by_commit_and_one_action_by_one_commit(root):
    uses = [
        line.split("uses:", 1)[1].strip()
        for path in sorted((root / ".github/workflows").glob("*.yml"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if "uses:" in line
    ]
    assert uses
    assert all(PINNED.fullmatch(use) for use in uses)
    assert len({use.split("@")[0] for use in uses}) == len(set(uses))


def test_workflows_may_only_read_and_publishing_needs_no_token(root):
    for path in (root / ".github/workflows").glob("*.yml"):
        text = path.read_text(encoding="utf-8")
        assert "\npermissions:\n  contents: read\n" in text
        assert "secrets." not in text
    assert "id-token: write" in (root / ".github/workflows/publish.yml").read_text(encoding="utf-8")


def test_the_paper_cites_what_its_list_holds(root):
    cited = set(re.findall(r"@(\w+)", (root / "paper/paper.md").read_text(encoding="utf-8")))
    listed = set(
        re.findall(r"^@\w+\{(\w+),", (root / "paper/paper.bib").read_text(encoding="utf-8"), re.MULTILINE)
    )
    assert cited == listed


def test_packed_files_that_differ_from_tracked_ones_are_named():
    tracked = ["README.md", "src/counterveil/a.py", "src/counterveil/b.md", ".github/workflows/x.yml"]
    sdist = ["c-1/README.md", "c-1/PKG-INFO", "c-1/src/counterveil/a.py", "c-1/src/counterveil/b.md"]
    wheel = ["counterveil/a.py", "counterveil/__pycache__/a.pyc", "c-1.dist-info/METADATA"]
    assert differences(sdist, wheel, tracked) == [
        "wheel has src/counterveil/__pycache__/a.pyc",
        "wheel lacks src/counterveil/b.md",
    ]
    assert differences(sdist[1:], [*wheel[:1], "counterveil/b.md"], tracked) == ["sdist lacks README.md"]


def test_every_core_dependency_has_an_upper_limit_above_what_was_tested():
    from packaging.requirements import Requirement

    listed = tomllib.loads((RELEASE_ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    tested = dict(
        line.split("==")
        for line in (RELEASE_ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line
    )
    for wanted in map(Requirement, listed):
        assert any(each.operator == "<" for each in wanted.specifier), wanted.name
        assert wanted.specifier.contains(tested[wanted.name]), wanted.name


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


def test_every_long_test_exists(root):
    functions = {
        f"{path.name}::{name}"
        for path in (root / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)\(", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    listed = (root / "tests" / "long.txt").read_text(encoding="utf-8").split()
    assert listed == sorted(set(listed))
    assert set(listed) - functions == set()
