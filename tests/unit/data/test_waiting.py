"""The line that says what a command is doing."""

import os

from counterveil.data.passes import note, say, silence


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
