"""People and strangers who keep a console busy: computations, half-sent requests, large and odd proposals."""

import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.parse
import urllib.request
from contextlib import contextmanager
from http.client import HTTPConnection

import pytest
from tests.unit.console.conftest import console, folder  # noqa: F401
from tests.unit.console.visitor import COLUMNS, PLACE, STUDY, code_of, make_folder, words

pytest.importorskip("jinja2", reason="the extra console is not installed")

# A plan that takes many minutes, and one that takes a moment.
LONG = {"rows": "200000", "draws": "50", "epsilons": "0.1 0.2 0.3 0.4 0.5 1 2 3 4 5 6 7"}
SHORT = {"rows": "200", "draws": "1", "epsilons": "1", "method": "difference_in_means"}
# So long that only a console that hangs reaches it.
HANGS = 300


class Guest:
    """A person's browser at a console that runs as people start it; what it asks can be left without an answer."""

    def __init__(self, link):
        self._jar = urllib.request.HTTPCookieProcessor()
        self._opener = urllib.request.build_opener(self._jar)
        self._opener.open(link, timeout=HANGS).read()
        address = urllib.parse.urlsplit(link)
        self.host, self.place = address.netloc, address.path.removesuffix("/enter")

    def get(self, path):
        with self._opener.open(f"http://{self.host}{self.place}{path}", timeout=HANGS) as found:
            return found.read().decode()

    def send(self, page, action, **typed):
        """Return a connection on which the form of a page was sent."""
        token = re.search(rf'action="{self.place}{action}">\s*<input[^>]*value="([^"]+)"', self.get(page))
        cookies = "; ".join(f"{each.name}={each.value}" for each in self._jar.cookiejar)
        connection = HTTPConnection(self.host, timeout=HANGS)
        connection.request(
            "POST",
            self.place + action,
            urllib.parse.urlencode({"token": token.group(1)} | typed),
            {
                "Cookie": cookies,
                "Origin": f"http://{self.host}",
                "Content-Type": "application/x-www-form-urlencoded",
            },
        )
        return connection


@contextmanager
def started(place):
    """The process of a console with a steward and an analyst, and the browsers of both."""
    command = [sys.executable, "-m", "counterveil", "console", str(place), "--analyst", "bob"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            process.stdout.readline()
            links = [process.stdout.readline().partition(": ")[2].strip() for _ in range(2)]
            yield process, *map(Guest, links)
        finally:
            process.kill()


def test_abandoned_plans_keep_nobody_waiting_and_end_with_the_console(tmp_path):
    with started(make_folder(tmp_path)) as (process, steward, analyst):
        left = [analyst.send("/studies/primary/plan", "/studies/primary/plan", **LONG) for _ in range(3)]
        # The steward computes although three plans of the analyst were asked for and wait.
        answer = steward.send("/studies/primary/plan", "/studies/primary/plan", **SHORT).getresponse()
        assert answer.status == 200
        assert "Half-widths by level" in answer.read().decode()
        for connection in left:
            connection.close()
        # What nobody waits for is stopped, so that the analyst can ask again.
        answer = analyst.send("/studies/primary/plan", "/studies/primary/plan", **SHORT).getresponse()
        assert answer.status == 200
        analyst.send("/studies/primary/plan", "/studies/primary/plan", **LONG)
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=HANGS)


def test_half_sent_requests_of_strangers_shut_nobody_out(tmp_path):
    with started(make_folder(tmp_path)) as (_, steward, analyst):
        host, _, port = steward.host.partition(":")
        held = []
        for number in range(80):
            held.append(socket.create_connection((host, int(port)), timeout=HANGS))
            held[-1].sendall(b"GET / HTTP/1.1\r\nHost: x\r\n" if number % 2 else b"POST /")
        assert "Register trial" in steward.get("/")
        assert "Data sets" in analyst.get("/")
        for each in held:
            each.close()


@contextmanager
def serving(place, sessions=None, **limits):
    """The address of a console in this process."""
    from counterveil.console.application import Console
    from counterveil.console.server import server_of
    from counterveil.console.visit import Sessions
    from counterveil.console.workspace import Workspace

    listening = socket.create_server(("127.0.0.1", 0))
    server = server_of(Console(Workspace(place), sessions or Sessions(), PLACE), **limits)
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    try:
        yield listening.getsockname()
    finally:
        server.should_exit = True
        thread.join()


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HTTP/1.1\r\n",
        # Whoever has no session is answered without its body being read; the rest of it is not waited for.
        b"POST /place/register HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n",
    ],
)
def test_a_connection_that_does_not_ask_is_closed(tmp_path, sent):
    with (
        serving(make_folder(tmp_path), most=8, patience=0.1) as address,
        socket.create_connection(address, timeout=HANGS) as slow,
    ):
        slow.sendall(sent)
        while slow.recv(65_536):
            pass


def test_the_oldest_of_too_many_strangers_is_closed(tmp_path):
    with serving(make_folder(tmp_path), most=2, patience=HANGS) as address:
        first, *others = [socket.create_connection(address, timeout=HANGS) for _ in range(3)]
        assert first.recv(1) == b""
        for each in others:
            each.sendall(b"GET /place/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert each.recv(65_536).startswith(b"HTTP/1.1 401")
            each.close()


def test_a_form_that_trickles_in_is_refused(tmp_path, monkeypatch):
    from counterveil.console import visit as sessions
    from counterveil.console.visit import SignedIn

    monkeypatch.setattr(sessions, "FORM_LIFE", 0.1)
    opened = sessions.Sessions()
    name, value = opened.enter(opened.invite(SignedIn("bob", steward=False)))
    with (
        serving(make_folder(tmp_path), opened, most=8, patience=0.1) as (host, port),
        socket.create_connection((host, port), timeout=HANGS) as slow,
    ):
        head = f"POST {PLACE}/register HTTP/1.1\r\nHost: {host}:{port}\r\nOrigin: http://{host}:{port}\r\n"
        head += f"Cookie: {name}={value}\r\nContent-Type: application/x-www-form-urlencoded\r\n"
        slow.sendall(f"{head}Content-Length: 99\r\n\r\ntoken=".encode())
        answer = b"".join(iter(lambda: slow.recv(65_536), b""))
    assert answer.startswith(b"HTTP/1.1 400")
    assert b"CV-W004" in answer


def test_a_form_whose_visitor_leaves_is_no_fault_of_the_console(tmp_path, caplog):
    from counterveil.console import visit as sessions
    from counterveil.console.visit import SignedIn

    opened = sessions.Sessions()
    name, value = opened.enter(opened.invite(SignedIn("bob", steward=False)))
    with serving(make_folder(tmp_path), opened, most=8, patience=HANGS) as (host, port):
        head = f"POST {PLACE}/register HTTP/1.1\r\nHost: {host}:{port}\r\nOrigin: http://{host}:{port}\r\n"
        head += f"Cookie: {name}={value}\r\nContent-Type: application/x-www-form-urlencoded\r\n"
        for _ in range(3):
            with socket.create_connection((host, port), timeout=HANGS) as gone:
                gone.sendall(f"{head}Expect: 100-continue\r\nContent-Length: 99\r\n\r\n".encode())
                # The form is being read: what was sent of it is asked for.
                assert gone.recv(65_536).startswith(b"HTTP/1.1 100")
                gone.sendall(b"token=")
        with socket.create_connection((host, port), timeout=HANGS) as other:
            other.sendall(
                f"GET {PLACE}/ HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n".encode()
            )
            assert b"".join(iter(lambda: other.recv(65_536), b"")).startswith(b"HTTP/1.1 401")
    assert caplog.records == []


def test_a_plan_that_takes_too_long_is_stopped(console, monkeypatch):  # noqa: F811
    from counterveil.console import application

    monkeypatch.setattr(application, "LONGEST_COMPUTATION", 0.01)
    ada = console()
    found = ada.post("/studies/primary/plan", "/studies/primary/plan", **SHORT)
    assert (found.status_code, code_of(found)) == (409, "CV-W012")


def test_a_plan_that_memory_could_not_hold_is_refused(console, folder):  # noqa: F811
    many = "".join(f"a{number} = {{range=[0,1]}}\n" for number in range(200))
    (folder / "studies" / "primary.toml").write_text(STUDY + many)
    found = console().post("/studies/primary/plan", "/studies/primary/plan", **LONG)
    assert (found.status_code, code_of(found)) == (400, "CV-W004")


def test_one_odd_folder_does_not_take_the_page_of_the_federation(console, folder, monkeypatch):  # noqa: F811
    from counterveil.console import ledgers

    def broken(_):
        raise ZeroDivisionError

    (folder / "north").mkdir()
    (folder / "north" / "site.toml").write_text("")
    monkeypatch.setattr(ledgers.SiteFile, "read", broken)
    found = console().get("/federation")
    assert found.status_code == 200
    assert "CV-X060" in found.text


@pytest.fixture
def steward(console):  # noqa: F811
    return console()


@pytest.fixture
def analyst(console):  # noqa: F811
    return console("bob", steward=False)


def proposed(steward, analyst, **typed):
    """Send a proposal as an analyst does."""
    steward.register()
    analyst.post("/studies/new", "/studies/new", name="idea")
    return analyst.fill("/studies/idea?proposed=1", "/studies/idea", COLUMNS, assignment="trial", **typed)


@pytest.mark.parametrize("number", ["０.5", "0.５", "1e٣", "٣", "1_0", "²"])
def test_an_odd_digit_in_a_condition_takes_the_list_from_nobody(steward, analyst, number):
    found = proposed(steward, analyst, where=f"age > {number}")
    assert found.status_code == 200
    assert code_of(found) == "CV-S121"
    for visitor in (steward, analyst):
        assert visitor.get("/studies").status_code == 200
        assert "1 open question or fault" in words(visitor.get("/studies"))


def test_a_study_that_nobody_foresaw_or_can_read_is_one_line_of_the_list(steward, folder, monkeypatch):  # noqa: F811
    from counterveil.console import studies

    (folder / "studies" / "odd.toml").write_bytes(b"\xff\xfe")
    # A text that no other test has read: what the list says of a text is kept.
    (folder / "studies" / "primary.toml").write_text(STUDY + "# unforeseen\n")

    def broken(_):
        raise ZeroDivisionError

    monkeypatch.setattr(studies, "sound_study", broken)
    page = steward.get("/studies")
    assert page.status_code == 200
    assert words(page).count("1 open question or fault") == 2
    assert code_of(steward.get("/studies/primary")) == "CV-X060"


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param("".join(f"a{number} = 1\n" for number in range(12_000)) + STUDY, marks=pytest.mark.slow),
        STUDY + "".join(f"a{number} = 1\n" for number in range(12_000)),
        STUDY + "".join(f"a{number} = {{range=[0,1]}}\n" for number in range(500)) + 'score = "binary"\n',
        pytest.param(
            STUDY + "[missing]\n" + "".join(f'a{number} = "drop"\n' for number in range(8_000)),
            marks=pytest.mark.slow,
        ),
    ],
    ids=["keys", "covariates", "one of many", "rules"],
)
def test_a_large_proposal_is_judged_within_limits_and_once(steward, analyst, monkeypatch, odd, folder):  # noqa: F811
    from counterveil.data import checking

    proposed(steward, analyst)
    (folder / "studies" / "proposed" / "idea.toml").write_text(odd)
    read = []
    judged = checking._problem
    monkeypatch.setattr(
        checking,
        "_problem",
        lambda document: read.append(1 + len(document.get("covariates", {}))) or judged(document),
    )
    found = analyst.get("/studies/idea?proposed=1")
    assert found.status_code == 200
    assert found.text.count("CV-") <= 110
    assert found.text.count("<tr") <= 1_100
    assert "fault" in words(found)
    assert sum(read) < 40_000
    steward.get("/studies")
    before = len(read)
    for visitor in (steward, analyst):
        assert visitor.get("/studies").status_code == 200
    assert len(read) == before


def test_a_proposal_is_not_as_long_as_a_study_may_be(steward, analyst, folder):  # noqa: F811
    found = proposed(steward, analyst, more=f'x = "{"x" * 200_000}"')
    assert code_of(found) == "CV-W004"
    # A form has at most so many rows.
    form = analyst.form("/studies/idea?proposed=1", "/studies/idea")
    rows = {f"name-{number}": f"c{number}" for number in range(1_002)}
    assert code_of(analyst.client.post(f"{PLACE}/studies/idea", data=form | rows)) == "CV-W004"
    assert len((folder / "studies" / "proposed" / "idea.toml").read_text()) < 10_000
