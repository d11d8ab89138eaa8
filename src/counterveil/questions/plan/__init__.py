"""Plans: what a question would answer on simulated studies, before anything is spent."""

from counterveil.questions.plan.people import Assumptions, simulate
from counterveil.questions.plan.plan import Plan, PlannedAnswer, plan

__all__ = ["Assumptions", "Plan", "PlannedAnswer", "plan", "simulate"]
