"""One study over TLS with real processes, in which everything goes wrong that can.

It is one test because its parts are chapters of one story: the processes are started once.
"""

import json
import ssl
import urllib.error
import urllib.request

import pytest

pytest.importorskip("flwr", reason="needs the extra [federation]")

from tests.system.federation.federation import Federation, wait_until
from tests.system.federation.hooked_site import SECRET

# Every site is several processes, of seconds each.
SITES = ("North", "Dying")
MORE_SITES = (*SITES, "South", "Leaky", "Poor", "Slow")
REFUSED = {"Leaky": "CV-F009", "Poor": "CV-F004"}
# Files by which this test and its planted faults speak to each other.
MARKS = ("paid", "go")
FAULTS = {"Leaky": "leaks", "Slow": "stalls", "Dying": "stalls"}


@pytest.fixture(params=[SITES, pytest.param(MORE_SITES, marks=pytest.mark.slow)], ids=len)
def federation(tmp_path, request):
    made = Federation(tmp_path, request.param, outsiders=("Stranger",) * (request.param != SITES))
    try:
        yield made
    finally:
        made.close()


@pytest.mark.federation
def test_nothing_paid_for_is_lost_and_nothing_private_gets_out(federation):
    the_coordinator_is_killed(federation)
    the_control_api_is_closed(federation)
    federation.kill("Dying")
    if "Leaky" in federation.names:
        one_is_late_and_one_is_dead(federation)
        strangers_are_turned_away(federation)
    the_rest_is_delivered(federation)
    nobody_paid_twice(federation)
    others_can_open_nothing(federation)
    if "Leaky" in federation.names:
        no_secret_got_out(federation)


def the_coordinator_is_killed(federation):
    federation.start_coordinator("coordinator1", deadline=600)
    strangers = ("Stranger",) * ("Leaky" in federation.names)
    for name in (*federation.names, *strangers):
        federation.start_site(name, FAULTS.get(name))
    for name in federation.names:
        if FAULTS.get(name) == "stalls":
            wait_until(f"{name} paid", (federation.path / name / "paid").exists)
        else:
            reply = wait_until(f"{name} replied", lambda name=name: federation.reply(name))
            assert reply.get("refusal") == REFUSED.get(name)
    for name in strangers:
        the_node_is_turned_away(federation, name)


def the_control_api_is_closed(federation):
    """Who can reach the port can neither start runs nor register nodes."""
    context = ssl.create_default_context(cafile=federation.study / "keys" / "ca.crt")
    for path in ("start-run", "register-node", "list-nodes"):
        call = urllib.request.Request(
            f"https://{federation.address}/v1/control/{path}",
            data=b"",
            headers={"content-type": "application/x-protobuf", "authorization": "Bearer guess"},
        )
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(call, context=context, timeout=60)
        assert caught.value.code == 401
    # Nor is it told what there is to call.
    for page in ("docs", "openapi.json", "redoc"):
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(f"https://{federation.address}/{page}", context=context, timeout=60)
        assert caught.value.code == 404
    federation.kill("coordinator1")


def one_is_late_and_one_is_dead(federation):
    """The restarted coordinator pools those it had, while one site is dead and one is slow."""
    kept = {name: federation.reply(name) for name in ("North", "South")}
    federation.drop("Leaky")
    second = federation.start_coordinator("coordinator2", deadline=15)
    wait_until("the deadline passed", lambda: second.poll() is not None)
    assert second.returncode == 0, federation.said("coordinator2")
    states = federation.states()
    assert (states["North"], states["South"]) == ("answered", "answered")
    said = federation.said("coordinator2")
    for name in ("Slow", "Dying"):
        # The link may not have seen them again before the deadline: their node reconnects in its own time.
        assert states[name] in ("no answer in time", "never connected")
        assert f"NOT IN THE RESULT: {name}" in said
    assert states["Poor"].startswith("refused, CV-F004")
    assert {name: federation.reply(name) for name in kept} == kept
    assert [site["name"] for site in json_in(said)["sites"]] == ["North", "South"]


def the_node_is_turned_away(federation, name):
    """Wait until a node was told so, and end it: it would go on trying."""
    wait_until(f"{name} was told", lambda: "not connected" in federation.said(name))
    federation.kill(name)


def strangers_are_turned_away(federation):
    """A node whose key was never known, and one whose site was taken out of the study."""
    the_node_is_turned_away(federation, "Leaky")
    log = (federation.path / "Stranger" / "node.log").read_text()
    assert "Failed to activate SuperNode" in log
    assert "Leaky" not in federation.said("coordinator2")
    assert "Stranger" not in federation.said("coordinator1")
    assert not federation.entries("Stranger")["reserve"]


def the_rest_is_delivered(federation):
    """What was paid for before the deadline and the death arrives in the next run."""
    federation.start_site("Dying")
    if "Slow" in federation.names:
        (federation.path / "Slow" / "go").touch()
    third = federation.start_coordinator("coordinator3", deadline=300, hostile=True)
    wait_until("the third run is over", lambda: third.poll() is not None)
    assert third.returncode == 0, federation.said("coordinator3")
    states = federation.states()
    answered = {name for name, state in states.items() if state == "answered"}
    assert answered == set(federation.names) - REFUSED.keys()
    assert len(json_in(federation.said("coordinator3"))["sites"]) == len(answered)
    # This coordinator sent code with its run. It was carried to the sites, and no site ran it.
    assert "sent a bundle with code" in federation.said("coordinator3")
    assert not (federation.path / "ran").exists()


def others_can_open_nothing(federation):
    """Keys, tokens, Flower's databases and logs are their owner's alone."""
    for name in ("study", *federation.names):
        folder = federation.path / name
        paths = [
            path for path in (folder, *folder.rglob("*")) if path.name not in MARKS and path.suffix != ".pub"
        ]
        assert not [path for path in paths if path.stat().st_mode & 0o077]


def nobody_paid_twice(federation):
    for name in federation.names:
        entries = federation.entries(name)
        paid = 0 if name in REFUSED else 1
        assert len(entries["reserve"]) == len(entries["settle"]) == paid, name
        if paid:
            request = json.loads((federation.study / "requests" / f"{name}.json").read_text())
            assert entries["settle"][0].request_id == f"trial-7@{request['request_id']}"
            released = json.loads(entries["settle"][0].facts["answer"])
            assert federation.reply(name)["result"]["estimate"] in released.values()


def no_secret_got_out(federation):
    assert SECRET.encode() not in federation.everything_at_the_coordinator()
    # Nor is it in what the site itself wrote down.
    assert "RuntimeError" in federation.said("Leaky")
    assert SECRET not in federation.said("Leaky")
    assert SECRET not in (federation.path / "Leaky" / "node.log").read_text()


def json_in(text):
    """Return the JSON object between lines of progress."""
    return json.JSONDecoder().raw_decode(text[text.index("\n{\n") :].strip())[0]


@pytest.mark.federation
@pytest.mark.slow
def test_a_ratio_arrives_as_the_means_of_both_arms(tmp_path):
    federation = Federation(tmp_path, ("North", "South"), measure="ratio")
    try:
        run = federation.start_coordinator("coordinator", deadline=300)
        for name in federation.names:
            federation.start_site(name)
        wait_until("the run is over", lambda: run.poll() is not None)
        assert run.returncode == 0, federation.said("coordinator")
        found = json_in(federation.said("coordinator"))
        assert found["measure"] == "ratio"
        assert found["numbers"]["names"] == list(federation.names)
        assert all(len(federation.entries(name)["settle"]) == 1 for name in federation.names)
    finally:
        federation.close()
