"""E15: 138 of 1,500 mutated documents gave errors without a code, or hung."""

import logging

import pytest
from tests.thinned import examples, thinned
from tools.fuzzing.messages import run


@pytest.mark.parametrize("seed", thinned([1, 2, 3], 1))
def test_every_mutated_document_meets_an_answer_or_a_code(seed):
    assert run(examples(40, 100), seed) == []


def test_a_run_leaves_the_loggers_of_the_process_as_they_were():
    run(1, 0)
    assert logging.getLogger("counterveil").level == logging.NOTSET
