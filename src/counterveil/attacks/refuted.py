"""The gallery: every claim that fails, the papers' first."""

from __future__ import annotations

from counterveil.attacks.gallery import Refuted
from counterveil.attacks.refuted_papers import papers
from counterveil.attacks.refuted_practice import practice

GALLERY: dict[str, Refuted] = {one.name: one for one in (*papers(), *practice())}
