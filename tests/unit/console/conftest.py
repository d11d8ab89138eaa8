"""A folder with rows, a study and nothing else, and a console over it."""

from contextlib import ExitStack

import pytest
from tests.unit.console.visitor import PLACE, Visitor, make_folder


@pytest.fixture
def folder(tmp_path):
    return make_folder(tmp_path)


@pytest.fixture
def console(folder):
    """Return what lets people in: `console("ada")` is the steward, `console("bob", steward=False)` an analyst."""
    pytest.importorskip("jinja2", reason="the extra console is not installed")
    from counterveil.console.application import Console
    from counterveil.console.visit import Sessions, SignedIn
    from counterveil.console.workspace import Workspace

    sessions = Sessions()
    application = Console(Workspace(folder), sessions, PLACE).application()
    with ExitStack() as browsers:

        def enter(name="ada", steward=True):
            visitor = Visitor(application, sessions, SignedIn(name, steward), folder)
            browsers.enter_context(visitor.client)
            return visitor

        yield enter


@pytest.fixture
def steward(console):
    return console()


@pytest.fixture
def analyst(console):
    return console("bob", steward=False)
