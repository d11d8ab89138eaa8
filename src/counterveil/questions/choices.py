"""What the arguments of questions may be, for editors that complete them; texts in variables are taken too."""

from typing import Literal

Protects = Literal["outcome", "treatment and outcome", "record"] | str
EstimandName = Literal["ATE", "ATT", "ATC", "ATO"] | str
Measure = Literal["difference", "ratio", "lift", "odds_ratio", "nnt"] | str
Mechanism = Literal["staircase", "laplace", "gaussian"] | str
ArmsMethod = Literal["auto", "difference_in_means", "weighting", "matching"] | str
AteMethod = (
    Literal[
        "auto",
        "difference_in_means",
        "trial",
        "matching",
        "doubly_robust",
        "stratified",
        "weighting",
        "sample_and_aggregate",
    ]
    | str
)
CateMethod = Literal["auto", "t_learner", "r_learner", "series", "bins", "sample_and_aggregate"] | str
GroupsMethod = Literal["auto", "difference_in_means", "weighting", "matching", "adjusted", "arms"] | str
OutcomesMethod = Literal["auto", "difference_in_means", "weighting", "matching", "trial"] | str
PolicyMethod = Literal["auto", "scores", "adjusted"] | str
SurvivalMethod = Literal["auto", "kaplan_meier", "stratified", "weighting"] | str
