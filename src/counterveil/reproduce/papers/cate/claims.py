"""The paper's claims in our words, where they stand, and what decides them."""

from counterveil.reproduce.papers.cate.judges import (
    anonymous_worse,
    boosted_worse,
    converges,
    correct,
    dr_functional,
    dr_noise,
    errors_fall,
    functional_alike,
    functional_usable,
    one_sided,
    relative,
    same_learners,
)
from counterveil.reproduce.papers.cate.medical import MIMIC_FILES, TCGA_FILES
from counterveil.reproduce.papers.cate.methods import FOREST, LITERAL, NETWORK
from counterveil.reproduce.papers.cate.promises import (
    consistent,
    guarantee,
    iterative,
    medical,
    no_growth,
    rises,
    small_loss,
)
from counterveil.reproduce.protocol import Claim

CLAIMS = (
    Claim(
        "Answers to finitely many queries are (epsilon, delta)-differentially private.",
        "Theorem 1",
        ("guarantees",),
        guarantee(1),
    ),
    Claim(
        "A released function is (epsilon, delta)-differentially private.",
        "Theorem 2",
        ("guarantees",),
        guarantee(2),
    ),
    Claim(
        "On Dataset 1 predictions become less noisy with the budget and approach those without privacy.",
        "Section 5.1, Figure 3",
        ("figure3",),
        converges("figure3", (FOREST, NETWORK)),
    ),
    Claim(
        "Predictions under a forest and a network are almost identical.",
        "Section 5.1, Figures 3 and 14",
        ("figure14",),
        same_learners,
    ),
    Claim(
        "Functional predictions on Dataset 1 approach those without privacy as the budget grows.",
        "Section 5.1, Figure 4",
        ("figure4",),
        converges("figure4", (LITERAL,)),
    ),
    Claim(
        "The functional form makes precise predictions of the effect at a large budget.",
        "Section 5.2, takeaways, Figure 4",
        ("figure4",),
        functional_usable,
    ),
    Claim(
        "On Dataset 2 errors at finitely many queries fall with the budget to those without privacy.",
        "Section 5.1, Figure 5",
        ("figure5",),
        errors_fall,
    ),
    Claim(
        "On Dataset 2 the functional form behaves as the finite one does.",
        "Section 5.1, Figure 5",
        ("figure5",),
        functional_alike,
    ),
    Claim(
        "On Dataset 2 predictions are correct; here: closer to the effects than one private effect for all.",
        "Section 5.1, Figure 5",
        ("figure5",),
        correct,
    ),
    Claim(
        "On MIMIC-III the effect of ventilation rises with hematocrit.",
        "Section 5.2, Figure 6",
        (),
        medical("figure6", MIMIC_FILES, rises),
    ),
    Claim(
        "On TCGA the loss in precision due to privacy is fairly small.",
        "Section 5.2, Figure 7",
        (),
        medical("figure7", TCGA_FILES, small_loss),
    ),
    Claim(
        "The DR-learner needs extremely enlarged noise compared to the R-learner.",
        "Supplement B, Figure 9",
        ("figure3", "figure9"),
        dr_noise,
    ),
    Claim(
        "With the DR-learner the functional form approaches its answers without noise faster than the finite one.",
        "Supplement B, Figure 10",
        ("figure9", "figure10"),
        dr_functional,
    ),
    Claim(
        "Functional noise is correlated and can look like over- or underestimation throughout.",
        "Supplement C.1",
        ("figure3", "figure4"),
        one_sided,
    ),
    Claim(
        "Iterative queries get private estimates of the effect.",
        "Supplement C.2, Algorithm 2",
        ("algorithm2",),
        iterative,
    ),
    Claim(
        "The work of Algorithm 1 does not grow with the number of queries.",
        "Section 4.2, scalability",
        ("sizes",),
        no_growth,
    ),
    Claim(
        "Noise vanishes with the number of people, so that the private estimate is consistent.",
        "Supplement D",
        ("sizes",),
        consistent,
    ),
    Claim(
        "Private boosted trees have by far the larger error, above all at small budgets.",
        "Supplement E.1, Figures 11 and 12",
        ("figure12",),
        boosted_worse,
    ),
    Claim(
        "k-anonymisation has the larger error for almost all budgets.",
        "Supplement E.2, Figure 13",
        ("figure13",),
        anonymous_worse,
    ),
    Claim(
        "On Dataset 1 the error relative to that without privacy falls as epsilon grows from 0.1 to 0.2.",
        "Supplement I, Figures 14 and 15",
        ("figure15",),
        relative,
    ),
)
