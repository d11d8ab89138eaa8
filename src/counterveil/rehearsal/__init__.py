"""Rehearsals: what a question would answer on made-up data, before anything is spent."""

from counterveil.rehearsal.answers import Rehearsal, RehearsedAnswer
from counterveil.rehearsal.assumptions import Assumptions
from counterveil.rehearsal.made_up import made_up
from counterveil.rehearsal.rehearse import rehearse

__all__ = ["Assumptions", "Rehearsal", "RehearsedAnswer", "made_up", "rehearse"]
