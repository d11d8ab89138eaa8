"""Plans: what a question would answer on simulated studies, before anything is spent."""

from counterveil.questions.plan.plan import Plan, PlannedAnswer, plan
from counterveil.questions.plan.simulated_study import Assumptions, made_up

__all__ = ["Assumptions", "Plan", "PlannedAnswer", "made_up", "plan"]
