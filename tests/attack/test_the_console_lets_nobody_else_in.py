"""The console under attack: strangers, forged forms, other people's sessions, and two tabs with the last epsilon."""

import json
import os
import subprocess
import sys
import threading
import time

import pytest
from tests.unit.console.conftest import console, folder  # noqa: F401
from tests.unit.console.visitor import HOST, PLACE, Visitor, code_of, words

import counterveil as cv
from counterveil.console.visit import SignedIn


@pytest.fixture
def steward(console):  # noqa: F811
    return console()


def pages():
    from counterveil.console.application import PAGES

    return [(method, path) for method, path, _ in PAGES]


def filled(path):
    for name, value in {
        "key": "0123456789ab",
        "seq": "2",
        "name": "primary",
        "site": "0",
        "code": "CV-B001",
    }.items():
        path = path.replace("{" + name + "}", value)
    return PLACE + path.replace("{file}", "report.html")


def spent(place):
    with cv.open_ledger(place / "ledger.db", inspect=True) as book:
        return book.account("trial").spent.epsilon, book.account("trial").requests


def test_no_page_and_no_form_without_a_session(steward):
    steward.register()
    stranger = steward.client
    stranger.cookies.clear()
    for cookie in (None, "guessed", "x" * 5000):
        headers = {} if cookie is None else {"cookie": f"counterveil-x={cookie}"}
        for method, path in pages():
            found = stranger.request(
                method, filled(path), headers=headers, data={} if method == "POST" else None
            )
            assert (found.status_code, code_of(found)) == (401, "CV-W001"), (method, path)
            assert "trial" not in found.text
    for path in ("/", "/enter", f"{PLACE}", "/static/console.css", f"{PLACE}/static/../application.py"):
        assert stranger.get(path).status_code in (401, 404), path


def test_a_link_is_used_up_by_its_first_visitor_and_not_by_a_head_request(console):  # noqa: F811
    ada = console()
    link = f"{PLACE}/enter?token={ada.sessions.invite(ada.person)}"
    assert ada.client.head(link).status_code in (404, 405)
    thief = console("eve")
    thief.client.cookies.clear()
    assert thief.client.get(link).status_code == 200
    ada.client.cookies.clear()
    assert code_of(ada.client.get(link)) == "CV-W001"


# A browser that writes down how it was started and what it found, and then follows the file as browsers do.
BROWSER = """\
import json, pathlib, re, stat, sys, urllib.parse, urllib.request
out, address = pathlib.Path(sys.argv[1]), sys.argv[2]
found = {"argv": sys.argv}
try:
    file = pathlib.Path(urllib.parse.unquote(urllib.parse.urlsplit(address).path))
    found["modes"] = [stat.S_IMODE(path.stat().st_mode) for path in (file, file.parent)]
    link = found["link"] = re.search("url=([^\\"]+)", file.read_text()).group(1)
    asked = urllib.request.Request(link, headers={"Sec-Fetch-Site": "cross-site"})
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    page = opener.open(asked, timeout=300).read().decode()
    then = urllib.parse.urljoin(link, re.search('content="0;url=([^"]+)"', page).group(1))
    found["first"] = opener.open(then, timeout=300).read().decode()
    found["left"] = file.parent.exists()
finally:
    out.with_suffix(".part").write_text(json.dumps(found))
    out.with_suffix(".part").rename(out)
"""


def test_a_browser_is_opened_without_the_token_on_its_command_line(folder, tmp_path):  # noqa: F811
    script, out = tmp_path / "browser.py", tmp_path / "found.json"
    script.write_text(BROWSER)
    environment = os.environ | {"BROWSER": f"{sys.executable} {script} {out} %s"}
    command = [sys.executable, "-m", "counterveil", "console", str(folder), "--browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            process.stdout.readline()
            link = process.stdout.readline().partition(": ")[2].strip()
            while not out.exists():
                assert process.poll() is None
                time.sleep(0.05)
        finally:
            process.terminate()
    found = json.loads(out.read_text())
    token = link.partition("token=")[2]
    assert not any(token in word for word in found["argv"])
    assert found["link"] == link
    assert found["modes"] == [0o600, 0o700]
    assert "Register trial" in found["first"]
    # The file is gone once it was used.
    assert found["left"] is False


def test_a_link_is_followed_from_elsewhere_only_if_it_was_written_to_a_file(console):  # noqa: F811
    ada = console()
    removed = []
    for used, status in ((None, 403), (lambda: removed.append(1), 200)):
        link = f"{PLACE}/enter?token={ada.sessions.invite(ada.person, used)}"
        found = ada.client.get(link, headers={"sec-fetch-site": "cross-site"})
        assert found.status_code == status
    assert removed == [1]
    # Other pages are not opened from elsewhere, whoever asks.
    assert ada.client.get(f"{PLACE}/", headers={"sec-fetch-site": "cross-site"}).status_code == 403


def cookies_of(visitor):
    return "; ".join(f"{name}={value}" for name, value in visitor.client.cookies.items())


def test_a_page_on_another_port_locks_nobody_out_and_swaps_no_session(console, folder):  # noqa: F811
    from counterveil.console.application import Console
    from counterveil.console.visit import Sessions
    from counterveil.console.workspace import Workspace

    ada, bob = console(), console("bob", steward=False)
    sessions = Sessions()
    other = Visitor(Console(Workspace(folder), sessions, PLACE).application(), sessions, ada.person)
    # Such a page can set cookies for all ports: with names it knows from a console of its own, and with a session that
    # its author has at this one.
    junk = "; ".join(f"{name}=junk" for name in other.client.cookies)
    for planted in (junk, cookies_of(bob), f"{junk}; {cookies_of(bob)}"):
        for both in (f"{cookies_of(ada)}; {planted}", f"{planted}; {cookies_of(ada)}"):
            found = ada.client.get(f"{PLACE}/", headers={"cookie": both})
            assert found.status_code == 200
            assert "ada, steward" in words(found)


def test_a_browser_has_one_session(console):  # noqa: F811
    ada = console()
    before = cookies_of(ada)
    link = f"{PLACE}/enter?token={ada.sessions.invite(SignedIn('bob', steward=False))}"
    assert "bob, analyst" in words(ada.client.get(link))
    ada.client.cookies.clear()
    assert ada.client.get(f"{PLACE}/", headers={"cookie": before}).status_code == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": f"{HOST}1"},
        {"host": "evil.example"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_a_form_of_another_page_is_refused_even_with_cookie_and_token(steward, folder, headers):  # noqa: F811
    steward.register()
    data = {"token": steward.token("/register"), "name": "mine", "epsilon": "100"}
    found = steward.client.post(f"{PLACE}/register", data=data, headers=headers)
    assert (found.status_code, code_of(found)) == (403, "CV-W002")
    with cv.open_ledger(folder / "ledger.db", inspect=True) as book:
        assert [account.dataset for account in book.datasets()] == ["trial"]


def test_a_form_without_an_origin_is_refused(steward):
    del steward.client.headers["origin"]
    data = {"token": steward.token("/register"), "name": "mine", "epsilon": "100"}
    assert code_of(steward.client.post(f"{PLACE}/register", data=data)) == "CV-W002"


def test_a_token_of_another_form_or_person_is_refused(console):  # noqa: F811
    ada, bob = console(), console("bob", steward=False)
    data = {"name": "mine", "epsilon": "1"}
    for token in ("", "x", ada.token("/leave"), bob.token("/register")):
        found = ada.client.post(f"{PLACE}/register", data=data | {"token": token})
        assert (found.status_code, code_of(found)) == (403, "CV-W003")
    # The steward's token does not make a steward of somebody else's session.
    found = bob.client.post(f"{PLACE}/register", data=data | {"token": ada.token("/register")})
    assert code_of(found) == "CV-W003"


def test_a_session_that_was_left_is_closed_for_its_cookie(steward):
    ((name, value),) = steward.client.cookies.items()
    assert "Signed out" in words(steward.post("/", "/leave"))
    assert steward.client.get(f"{PLACE}/", headers={"cookie": f"{name}={value}"}).status_code == 401


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"token=" + b"x" * 4_100_000, "application/x-www-form-urlencoded"),
        (
            b"--b\r\nContent-Disposition: form-data; name=token\r\n\r\nx\r\n--b--",
            "multipart/form-data; boundary=b",
        ),
        (b'{"token": 1}', "application/json"),
        (b"\xff\xfe\x00", "application/x-www-form-urlencoded"),
        (b"token", "application/x-www-form-urlencoded"),
        (b"a=1&a=2", "application/x-www-form-urlencoded"),
        (b"", ""),
    ],
)
def test_oversize_and_malformed_forms_are_refused(steward, body, kind):
    found = steward.client.post(f"{PLACE}/register", content=body, headers={"content-type": kind})
    assert (found.status_code, code_of(found)) == (400, "CV-W004")


def test_a_body_that_says_that_it_is_short_is_not_believed(steward):
    def endless():
        for _ in range(50):
            yield b"a" * 100_000

    headers = {"content-type": "application/x-www-form-urlencoded"}
    assert code_of(steward.client.post(f"{PLACE}/register", content=endless(), headers=headers)) == "CV-W004"


def test_every_answer_has_its_headers_and_the_cookie_its_limits(console):  # noqa: F811
    ada = console()
    for path in ("/", "/nothing", "/static/console.css", "/explain/CV-B001"):
        found = ada.get(path).headers
        assert "default-src 'none'" in found["content-security-policy"]
        assert "unsafe" not in found["content-security-policy"]
        assert found["x-content-type-options"] == "nosniff"
        assert found["x-frame-options"] == "DENY"
        assert found["referrer-policy"] == "same-origin"
        assert "access-control-allow-origin" not in found
    link = f"{PLACE}/enter?token={ada.sessions.invite(ada.person)}"
    for cookie in ada.client.get(link, follow_redirects=False).headers.get_list("set-cookie"):
        parts = {part.strip().lower() for part in cookie.split(";")}
        assert {"httponly", "samesite=strict", f"path={PLACE}/"} <= parts


def test_no_address_is_answered_past_the_guard_or_without_the_headers(steward):
    """A page that is nearly there is no redirection: it would name any host, and carry no policy."""
    for path in ("/studies/", "/ledgers/", "/data/0123456789ab/ask/", "", "/nothing", "/static/console.css/"):
        found = steward.get(path, follow_redirects=False)
        assert (found.status_code, code_of(found)) == (404, "CV-W007"), path
        assert "default-src 'none'" in found.headers["content-security-policy"]
        elsewhere = steward.get(path, headers={"host": "evil.example"}, follow_redirects=False)
        assert (elsewhere.status_code, code_of(elsewhere)) == (403, "CV-W002"), path
        assert "location" not in {*found.headers, *elsewhere.headers}


def test_no_page_has_inline_script_or_style(steward):
    key = steward.register()
    steward.ask(key)
    for path in (
        "/",
        f"/data/{key}",
        f"/data/{key}/ask",
        f"/data/{key}/requests/2",
        "/studies/primary",
        "/ledgers",
    ):
        text = steward.get(path).text
        assert " style=" not in text
        assert "<style" not in text
        assert "javascript:" not in text
        assert (
            text.count("<script") == text.count('<script src="/place/static/console.js" defer></script>') == 1
        )


def test_names_from_forms_and_files_are_shown_as_text(steward, folder):  # noqa: F811
    mark = "<script>alert(1)</script>"
    steward.register(note=mark)
    (folder / "studies" / "odd.toml").write_text(
        f'treatment = "{mark}"\n[outcome]\ncolumn = "y"\nrange = [0, 1]\n'
    )
    for path in ("/", "/studies", "/studies/odd", "/studies/odd/plan", "/register?name=%3Cscript%3E"):
        assert mark not in steward.get(path).text
        assert "<script>" not in steward.get(path).text


def test_one_form_in_two_tabs_is_charged_once(steward, folder):  # noqa: F811
    key = steward.register(epsilon="1")
    form = steward.form(steward.confirm(key).text, f"/data/{key}/spend")
    found = together(2, lambda _: steward.client.post(f"{PLACE}/data/{key}/spend", data=form))
    assert [each.status_code for each in found] == [200, 200]
    assert str(found[0].url) == str(found[1].url)
    assert spent(folder) == (1, 1)


def test_two_tabs_with_the_last_epsilon_are_charged_once_together(steward, folder):  # noqa: F811
    key = steward.register(epsilon="1")
    forms = [steward.form(steward.confirm(key).text, f"/data/{key}/spend") for _ in range(2)]
    found = together(2, lambda place: steward.client.post(f"{PLACE}/data/{key}/spend", data=forms[place]))
    assert sorted(each.status_code for each in found) == [200, 409]
    assert {code_of(each) for each in found} == {None, "CV-B001"}
    assert spent(folder) == (1, 1)


def test_a_name_that_was_used_for_another_question_is_refused(steward, folder):  # noqa: F811
    key = steward.register()
    assert steward.ask(key, request="one").status_code == 200
    found = steward.ask(key, request="one", level="0.9")
    assert (found.status_code, code_of(found)) == (409, "CV-L007")
    assert spent(folder) == (1, 1)


def test_what_is_asked_is_what_was_confirmed(steward, folder):  # noqa: F811
    key = steward.register()
    page = steward.confirm(key).text
    study = folder / "studies" / "primary.toml"
    study.write_text(study.read_text().replace("[0, 100]", "[0, 1000]"))
    assert code_of(steward.post(page, f"/data/{key}/spend")) == "CV-W008"
    assert spent(folder) == (0, 0)


def together(count, call):
    """Return what several threads got that called at once."""
    found, start = [None] * count, threading.Barrier(count)

    def run(place):
        start.wait()
        found[place] = call(place)

    threads = [threading.Thread(target=run, args=(place,)) for place in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found
