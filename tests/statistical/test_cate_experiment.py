"""The experiment on effects that differ between people: its baselines and shortcuts are what they say."""

import numpy as np
import pytest
from experiments.cate.__main__ import EPSILONS
from experiments.cate.instances import FIRST_SEED, instance

from counterveil_lab.reproduce.papers.cate.methods import K, constant_answers, not_private, our_answers
from counterveil_lab.reproduce.papers.cate.studies import anonymised, published_fit


@pytest.fixture(scope="module")
def study():
    return instance("dataset 1", 3000, FIRST_SEED)


def test_one_published_fit_serves_all_epsilons_with_noise_in_proportion(study):
    fit = published_fit(study, "DP-CATE linear", 7, "1e-6")
    last, first = fit.answers(EPSILONS[-1]), fit.answers(EPSILONS[0])
    fitted = (EPSILONS[-1] * last - EPSILONS[0] * first) / (EPSILONS[-1] - EPSILONS[0])
    noise = (first - fitted) * EPSILONS[0]
    assert abs(noise.mean()) < 4 * noise.std() / np.sqrt(len(noise))
    assert fitted == pytest.approx(fit.effects)
    assert study.error(fitted) < 1.0


def test_ours_beats_the_constant_and_the_published_linear_form_at_epsilon_one(study):
    ours = study.error(our_answers(study, 1.0, FIRST_SEED))
    assert ours < 0.54
    assert ours < study.error(constant_answers(study, 1.0, FIRST_SEED))
    assert ours < study.error(published_fit(study, "DP-CATE linear", FIRST_SEED, "1e-6").answers(1.0))
    assert study.error(not_private(study)) < 0.2
    assert study.error(not_private(anonymised(study, K))) < 0.3
