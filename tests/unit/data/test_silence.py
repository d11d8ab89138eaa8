"""Silence: nothing gets out of it, everything gets out before and after it, errors pass."""

import logging
import os
import sys
import threading
import warnings

import numpy as np
import pytest

from counterveil.data import silence


def speak(what):
    print(what)
    print(what, file=sys.stderr)
    os.write(1, what.encode() + b"\n")
    os.write(2, what.encode() + b"\n")


def test_only_what_is_inside_is_dropped(capfd):
    speak("before")
    with silence():
        speak("inside")
        with silence():
            speak("deep inside")
        speak("inside again")
    speak("after")
    found = capfd.readouterr()
    for text in found:
        assert sorted(text.split()) == ["after", "after", "before", "before"]


def test_errors_pass_and_end_the_silence(capfd):
    with pytest.raises(KeyError, match="ours"), silence():
        raise KeyError("ours")
    speak("after")
    assert capfd.readouterr().out.split() == ["after", "after"]


def test_it_lasts_until_the_last_thread_has_left(capfd):
    inside, leave = threading.Event(), threading.Event()

    def work():
        with silence():
            inside.set()
            leave.wait()
            speak("in the thread")

    other = threading.Thread(target=work)
    filters = list(warnings.filters)
    with silence():
        other.start()
        inside.wait()
    speak("while the thread is inside")
    leave.set()
    other.join()
    speak("after")
    assert capfd.readouterr().out.split() == ["after", "after"]
    assert list(warnings.filters) == filters
    assert logging.root.manager.disable == logging.NOTSET


def test_warnings_are_neither_shown_nor_raised():
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        with silence():
            assert np.isinf(np.array([1e308]) * 10).all()
            warnings.warn("of rows", stacklevel=1)
        with pytest.raises(UserWarning):
            warnings.warn("of ours", stacklevel=1)
        with pytest.raises(FloatingPointError):
            np.array([1e308]) * 10


def test_a_stream_that_a_library_keeps_can_be_written_to_afterwards(capfd):
    with silence():
        handler = logging.StreamHandler()
    logger = logging.getLogger("kept")
    logger.addHandler(handler)
    try:
        logger.error("dropped, and no error of the logging itself")
    finally:
        logger.removeHandler(handler)
    assert capfd.readouterr() == ("", "")
