"""The command `audit`: names, JSON, pages and exit codes."""

import re

from tests.command_line import as_json, asked, said

from counterveil_lab.attacks.gallery import GALLERY


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


def test_the_page_of_the_gallery_shows_how_each_claim_was_broken(tmp_path):
    said("audit", "--gallery", "--page", tmp_path / "gallery.md")
    page = (tmp_path / "gallery.md").read_text(encoding="utf-8")
    titles = [title.casefold() for title in re.findall(r"^## (.+)$", page, re.M)]
    assert titles == [name.casefold() for name in GALLERY]
    assert page.count("- **Found:**") == len(GALLERY)
