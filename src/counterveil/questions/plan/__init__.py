"""Plans: what a question would answer on simulated studies, before anything is spent."""

from counterveil.questions.plan.assumptions import Assumptions, Decision
from counterveil.questions.plan.people import AssumedPeople, simulate
from counterveil.questions.plan.plan import ALL, Plan, PlannedAnswer, plan

__all__ = ["ALL", "AssumedPeople", "Assumptions", "Decision", "Plan", "PlannedAnswer", "plan", "simulate"]
