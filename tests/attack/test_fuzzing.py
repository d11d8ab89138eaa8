"""A small part of `make fuzz`, with a fixed seed: the rules hold, and the judge finds what breaks them."""

import sys
import warnings

import pytest
from tools.fuzzing.__main__ import subjects, tasks
from tools.fuzzing.judging import FAILED, NUMBER_CANARY, REFUSED, SECRET, TEXT_CANARY, Answer, judge

from counterveil.errors import ParameterError

SEED = 20
INPUTS = {
    "files": 15,
    "studies": 24,
    "drafts": 26,
    "documents": 20,
    "ledgers": 10,
    "arguments": 24,
    "commands": 9,
    "console": 26,
}


@pytest.mark.parametrize("name", INPUTS)
def test_malformed_inputs_break_no_rule(name, tmp_path, monkeypatch):
    if name == "console":
        pytest.importorskip("jinja2", reason="the extra console is not installed")
    monkeypatch.chdir(tmp_path)
    subject = subjects()[name]
    if hasattr(subject, "prepare"):
        subject.prepare(tmp_path)
    verdicts = [judge(subject, name, number, SEED, tmp_path) for number in range(INPUTS[name])]
    assert [verdict.reason for verdict in verdicts if verdict.state == FAILED] == []
    assert len({verdict.reason for verdict in verdicts}) > 1 or name == "commands"


def failing(what):
    def make(_rng, _folder):
        return what

    return make


def uncoded():
    raise KeyError("x")


def leaking():
    try:
        raise ValueError(f"could not convert {TEXT_CANARY}")
    except ValueError as error:
        raise ParameterError("CV-P004", "no", expected="x", got="y", fix="z") from error


def printing():
    print(f"value {NUMBER_CANARY:.9g}", file=sys.stderr)
    return Answer()


def warning():
    warnings.warn("invalid value", RuntimeWarning, stacklevel=1)
    return Answer()


@pytest.mark.parametrize("fault", [uncoded, leaking, printing, warning, lambda: Answer([SECRET]), sys.exit])
def test_the_judge_finds_a_broken_rule(fault, tmp_path):
    assert judge(failing(fault), "own", 0, 1, tmp_path).state == FAILED


def test_the_judge_takes_a_refusal_for_what_it_is(tmp_path):
    def refused():
        raise ParameterError("CV-P004", "no", expected="x", got="y", fix="z")

    verdict = judge(failing(refused), "own", 0, 1, tmp_path)
    assert (verdict.state, verdict.reason) == (REFUSED, "CV-P004")


def test_the_numbers_of_inputs_are_those_asked_for():
    listed = tasks(5000, 3000)
    messages = [task for task in listed if task.subject == "messages"]
    assert len(listed) - len(messages) == 5000
    assert 10 * len(messages) == 3000
