"""Plans: what a question would answer on simulated studies, before anything is spent."""

from counterveil.questions.plan.people import Assumptions, simulate
from counterveil.questions.plan.plan import ALL, Plan, PlannedAnswer, plan

__all__ = ["ALL", "Assumptions", "Plan", "PlannedAnswer", "plan", "simulate"]
