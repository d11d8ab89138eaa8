"""The command that starts a console: its refusals, its links, and a server that answers on this machine only."""

import re
import subprocess
import sys
import urllib.error
import urllib.request

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


def test_it_listens_on_this_machine_and_its_link_works_once(folder):
    pytest.importorskip("jinja2", reason="the extra console is not installed")
    command = [sys.executable, "-m", "counterveil", "console", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert "this machine only" in process.stdout.readline()
            link = process.stdout.readline().partition(": ")[2].strip()
            assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{16}/enter\?token=[\w-]{43}", link)
            opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
            assert b"Register trial" in opener.open(link, timeout=60).read()
            with pytest.raises(urllib.error.HTTPError, match="401"):
                urllib.request.urlopen(link, timeout=60)
            asked = urllib.request.Request(link, headers={"Host": "evil.example"})
            with pytest.raises(urllib.error.HTTPError, match="403"):
                opener.open(asked, timeout=60)
        finally:
            process.terminate()
            assert process.stderr.read() == ""
