"""E15: 138 of 1,500 mutated documents gave errors without a code, or hung."""

import pytest
from tests.thinned import examples, thinned
from tools.fuzzing.messages import run


@pytest.mark.parametrize("seed", thinned([1, 2, 3], 1))
def test_every_mutated_document_meets_an_answer_or_a_code(seed):
    assert run(examples(40, 100), seed) == []
