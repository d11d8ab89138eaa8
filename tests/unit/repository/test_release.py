"""Files that a release needs agree with each other; `make wheel` builds and tries the packages themselves."""

import re
import tomllib
from pathlib import Path

from tools.release import differences, versions

ROOT = Path(__file__).resolve().parents[3]

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

    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    tested = dict(
        line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line
    )
    for wanted in map(Requirement, listed):
        assert any(each.operator == "<" for each in wanted.specifier), wanted.name
        assert wanted.specifier.contains(tested[wanted.name]), wanted.name
