"""Rehearsals: what a question would answer on made-up data, before anything is spent."""

from counterveil.questions.plan.plan import Rehearsal, RehearsedAnswer, rehearse
from counterveil.questions.plan.simulated_study import Assumptions, made_up

__all__ = ["Assumptions", "Rehearsal", "RehearsedAnswer", "made_up", "rehearse"]
