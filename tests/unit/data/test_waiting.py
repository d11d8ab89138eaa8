"""The line that says what a command is doing."""

import os
import threading

import pytest

from counterveil.data import progress
from counterveil.data.progress import Waiting
from counterveil.data.silence import note, say, silence


@pytest.fixture
def said(monkeypatch):
    """Return what is shown and a wait for it; nothing has to be waited for."""
    lines, shown = [], threading.Event()

    def keep(text):
        lines.append(text)
        shown.set()

    monkeypatch.setattr(progress, "say", keep)
    monkeypatch.setattr(progress, "note", lambda text: lines.append(f"log: {text}"))
    monkeypatch.setattr(progress, "_PATIENCE", 0.001)
    monkeypatch.setattr(progress, "_PAUSE", 0.001)
    return lines, shown


def test_it_tells_how_far_it_is_and_is_taken_away(said, monkeypatch):
    lines, shown = said
    monkeypatch.setattr(progress, "_LONG", 0.0)
    with Waiting("plan", "Ctrl-C stops it") as waiting:
        waiting.tell("3 of 20 studies")
        assert shown.wait(30)
        waiting.close()
        told = list(lines)
    assert told[0] == "log: plan, 3 of 20 studies ..."
    assert "plan, 3 of 20 studies: 0 s; Ctrl-C stops it" in told[1]
    assert told[-1] == progress._TAKEN_AWAY
    assert sum(text.startswith("log") for text in told) == 1
    # Closed twice, it says nothing more.
    assert lines == told


def test_a_log_gets_notes_and_no_lines_of_a_terminal():
    reading, writing = os.pipe()
    kept = os.dup(2)
    try:
        os.dup2(writing, 2)
        with silence():
            say("for a terminal")
            note("for a log")
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        assert pipe.read() == b"for a log\n"
