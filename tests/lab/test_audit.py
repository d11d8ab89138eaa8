"""The command `audit`: names, JSON, pages and exit codes."""

import pytest
from tests.command_line import as_json, asked, said
from tests.figures import DRAWN, PRINTED, assert_same

from counterveil_lab.attacks.command import EVERYTHING


def test_one_report_is_printed_and_as_json():
    words = ("audit", "mechanism/response of 2", "--trials", 2000)
    assert "PASSED" in said(*words)
    assert [(one["name"], one["verdict"]) for one in as_json(*words)] == [
        ("mechanism/response of 2", "passed")
    ]


def test_an_audit_without_power_has_another_exit_code(tmp_path):
    names = ("mechanism/response of 2", "mechanism/response of 4")
    shown = asked("audit", *names, "--trials", 8, "--page", tmp_path / "p.md")
    assert shown.exit_code == 1
    assert "2 audits: 0 violated, 0 passed, 2 inconclusive" in shown.stdout
    assert "| `mechanism/response of 2` | 1 |" in (tmp_path / "p.md").read_text()


def test_the_pages_of_the_repository_are_those_that_the_command_writes(root, tmp_path):
    said("audit", "--gallery", "--page", tmp_path / "gallery.md")
    pages = (tmp_path / "gallery.md", root / "docs/explanation/claims-that-fail.md")
    made, kept = (page.read_text(encoding="utf-8").splitlines() for page in pages)
    assert len(made) == len(kept)
    for line, other in zip(made, kept, strict=True):
        if line.startswith("- **Found:**"):
            assert_same(line, other, DRAWN if "threshold tester" in line else PRINTED)
        else:
            assert line == other
    table = (root / "docs/explanation/how-we-attack-ourselves.md").read_text()
    assert {name for name in EVERYTHING if f"| `{name}` |" not in table} == set()


@pytest.fixture
def root(request):
    return request.config.rootpath
