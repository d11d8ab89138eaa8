"""C10: a ledger that was put back, or flipped in a byte, let a site spend 5 of 3 while its answers lay beside it."""

import json
import shutil

import pytest

from counterveil.errors import CounterveilError
from counterveil.federation.site import check_site


def copy_of(world, name):
    """Keep a copy of everything that belongs to a site's ledger."""
    files = list((world.path / name).glob("ledger.db*"))
    return [(path, path.read_bytes()) for path in files]


def put_back(world, name, copy):
    for path in (world.path / name).glob("ledger.db*"):
        path.unlink()
    for path, content in copy:
        path.write_bytes(content)


def answer(world, name, request_id):
    return json.loads(world.sites[name].answer(world.request(name, request_id)))


def test_a_ledger_that_was_put_back_answers_nothing(world):
    assert answer(world, "North", "a")["result"]
    copy = copy_of(world, "North")
    assert answer(world, "North", "b")["result"]
    assert answer(world, "North", "c")["result"]
    put_back(world, "North", copy)
    # The budget is 3. The ledger knows of one request, the answers of three.
    refused = answer(world, "North", "d")
    assert refused["result"] is None
    assert refused["refusal"] == "CV-F042"
    with pytest.raises(CounterveilError):
        check_site(world.path / "North")


def test_the_coordinator_remembers_a_ledger_whose_answers_went_too(world):
    world.run()
    folder = world.path / "North"
    copy = copy_of(world, "North")
    shutil.copytree(folder / "answers", folder / "older")
    world.study.renew("North")
    world.run()
    put_back(world, "North", copy)
    shutil.rmtree(folder / "answers")
    shutil.move(folder / "older", folder / "answers")
    # The site alone cannot know; the coordinator has seen a later end of its ledger, and sends it with its request.
    world.study.renew("North")
    said = world.run()
    assert any(line.startswith("North: refused, CV-F042") for line in said)


def test_site_run_refuses_what_site_check_finds(world):
    assert answer(world, "North", "a")["result"]
    path = world.path / "North" / "ledger.db"
    content = bytearray(path.read_bytes())
    # In the middle of the answer, which no total is made of.
    content[content.rindex(b"difference in means")] ^= 1
    path.write_bytes(content)
    with pytest.raises(CounterveilError):
        check_site(world.path / "North")
