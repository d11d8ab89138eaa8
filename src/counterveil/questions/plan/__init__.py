"""Plans: what a question would answer on simulated studies, before anything is spent."""

from counterveil.questions.plan.assumptions import Assumptions
from counterveil.questions.plan.plan import Plan
from counterveil.questions.plan.planning import plan
from counterveil.questions.plan.simulated_study import simulate
from counterveil.questions.plan.trials import PlannedAnswer

__all__ = ["Assumptions", "Plan", "PlannedAnswer", "plan", "simulate"]
