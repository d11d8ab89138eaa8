"""Tokens, sessions and what the guard lets through; the command that starts a console."""

import re
import subprocess
import sys
import urllib.error
import urllib.request

import pytest
from tests.command_line import asked

from counterveil.accounting.accounts import system_user
from counterveil.console.visit import IDLE_LIFE, LINK_LIFE, Sessions, SignedIn, check_origin, fields
from counterveil.errors import CounterveilError

ADA = SignedIn("ada", steward=True)


@pytest.fixture
def clock():
    return [0.0]


@pytest.fixture
def sessions(clock):
    return Sessions(lambda: clock[0])


def refused(call, *arguments):
    with pytest.raises(CounterveilError) as caught:
        call(*arguments)
    return caught.value.code


def test_a_link_works_once_and_not_for_ever(sessions, clock):
    token = sessions.invite(ADA)
    cookie = dict([sessions.enter(token)])
    assert sessions.find(cookie).person == ADA
    assert refused(sessions.enter, token) == "CV-W001"
    late = sessions.invite(ADA)
    clock[0] += LINK_LIFE + 1
    assert refused(sessions.enter, late) == "CV-W001"


def test_a_session_ends_when_it_is_left_or_not_used(sessions, clock):
    first, second = (dict([sessions.enter(sessions.invite(ADA))]) for _ in range(2))
    clock[0] += IDLE_LIFE - 1
    sessions.find(first)
    clock[0] += 2
    sessions.find(first)
    assert refused(sessions.find, second) == "CV-W001"
    sessions.leave(sessions.find(first))
    assert refused(sessions.find, first) == "CV-W001"
    assert refused(sessions.find, {}) == "CV-W001"
    assert refused(sessions.find, {next(iter(first)): "\ud800"}) == "CV-W001"


def test_a_form_has_a_token_of_its_own_in_every_session(sessions):
    one, two = (sessions.find(dict([sessions.enter(sessions.invite(ADA))])) for _ in range(2))
    one.check_form("/a", one.form_token("/a"))
    for session, action, token in (
        (one, "/b", one.form_token("/a")),
        (two, "/a", one.form_token("/a")),
        (one, "/a", ""),
    ):
        assert refused(session.check_form, action, token) == "CV-W003"


LOCAL = {"host": "127.0.0.1:8000"}


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost:9", "[::1]:80", "localhost"])
def test_names_of_this_machine_are_let_in(host):
    check_origin("GET", {"host": host})
    check_origin("POST", {"host": host, "origin": f"http://{host}", "sec-fetch-site": "same-origin"})


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("GET", {}),
        ("GET", {"host": "evil.example"}),
        ("GET", {"host": "127.0.0.1.evil.example:8000"}),
        ("GET", {"host": "[::1"}),
        ("GET", {"host": "[::1]evil"}),
        ("GET", {"host": "[::1]evil.example:8000"}),
        ("GET", {"host": "evil.example@127.0.0.1"}),
        ("GET", {"host": "127.0.0.1:8000/evil"}),
        ("GET", {"host": "127.0.0.1:evil"}),
        ("GET", {"host": "localhost\n"}),
        ("GET", {"host": "evil.example@127.0.0.1.example"}),
        ("GET", LOCAL | {"sec-fetch-site": "cross-site"}),
        ("GET", LOCAL | {"sec-fetch-site": "same-site"}),
        ("POST", LOCAL),
        ("POST", LOCAL | {"origin": "null"}),
        ("POST", LOCAL | {"origin": "http://127.0.0.1:8001"}),
        ("POST", LOCAL | {"origin": "https://127.0.0.1:8000"}),
        ("POST", LOCAL | {"origin": "http://evil.example"}),
    ],
)
def test_other_hosts_and_origins_are_not(method, headers):
    assert refused(check_origin, method, headers) == "CV-W002"


@pytest.mark.parametrize(
    "body", [b"a", b"\xff=1", b"a=%FF", b"a=1&a=2", b"a=%00", b"&".join([b"a%d=1" % n for n in range(8_101)])]
)
def test_forms_that_no_browser_sends_are_refused(body):
    assert refused(fields, body) == "CV-W004"


def command_refused(*words):
    return getattr(asked("console", *words).exception, "code", None)


def test_folders_and_ports_that_cannot_be_used_are_refused(folder):
    pytest.importorskip("jinja2", reason="the extra console is not installed")
    assert command_refused(folder / "absent") == "CV-W009"
    assert command_refused(folder, "--port", 70000) == "CV-W011"
    assert command_refused(folder, "--analyst", " bob") == "CV-L011"
    assert command_refused(folder, "--analyst", "bob", "--analyst", system_user().upper()) == "CV-W013"
    (folder / "console.toml").write_text("ledger = 1\n")
    assert command_refused(folder) == "CV-W009"
    (folder / "console.toml").write_text("ledgers = [1]\n")
    assert command_refused(folder) == "CV-W009"
    (folder / "console.toml").write_text("ledgers = \n")
    assert command_refused(folder) == "CV-W009"


def test_a_missing_extra_is_named(folder, monkeypatch):
    monkeypatch.setattr(
        "counterveil.cli.audit.find_spec", lambda name: None if name == "jinja2" else object()
    )
    assert command_refused(folder) == "CV-E080"


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
            assert process.stderr.read() == "ended by SIGTERM; a budget that was reserved stays spent\n"
