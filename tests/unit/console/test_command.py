"""The command that starts a console: its refusals, its links, and a server that answers on this machine only."""

import pytest
from typer.testing import CliRunner

from counterveil.cli.app import app


def refused(*words):
    found = CliRunner().invoke(app, ["console", *map(str, words)])
    return getattr(found.exception, "code", None)


def test_folders_and_ports_that_cannot_be_used_are_refused(folder):
    pytest.importorskip("jinja2", reason="the extra console is not installed")
    assert refused(folder / "absent") == "CV-W009"
    assert refused(folder, "--port", 70000) == "CV-W011"
    assert refused(folder, "--analyst", " bob") == "CV-L011"
    (folder / "console.toml").write_text("ledger = 1\n")
    assert refused(folder) == "CV-W009"
    (folder / "console.toml").write_text("ledgers = [1]\n")
    assert refused(folder) == "CV-W009"
    (folder / "console.toml").write_text("ledgers = \n")
    assert refused(folder) == "CV-W009"


def test_a_missing_extra_is_named(folder, monkeypatch):
    monkeypatch.setattr(
        "counterveil.cli.audit.find_spec", lambda name: None if name == "jinja2" else object()
    )
    assert refused(folder) == "CV-E080"
