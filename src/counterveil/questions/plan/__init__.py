"""Plans: what a question would answer on simulated studies, before anything is spent."""

from counterveil.questions.plan.plan import Plan, PlannedAnswer, plan
from counterveil.questions.plan.simulated_study import Assumptions, simulate

__all__ = ["Assumptions", "Plan", "PlannedAnswer", "plan", "simulate"]
