"""The labels of several arms: checked, the reference first."""

from __future__ import annotations

from collections.abc import Mapping

from counterveil.data.labels import Label, LabelIndex, checked_label, first_confusable
from counterveil.errors import StudyError, shown

_FEWEST = 3


def arm_labels(arms: object, reference: object, two_arms: Mapping[str, object]) -> tuple[Label, ...] | None:
    """Return the labels of a study of several arms, the reference first; None for a study of two arms.

    `two_arms` holds the declarations that belong to two arms, None where they were not made.
    """
    if arms is None:
        if reference is not None:
            raise _no_reference("no reference without arms=", f"reference={shown(reference)} and no arms")
        return None
    made = {name: value for name, value in two_arms.items() if value is not None}
    if made:
        raise StudyError(
            "CV-S061",
            "a study has two arms or several, not both",
            expected="arms= and reference= alone, or treated= and control= (and treated_share=)",
            got="arms= beside " + ", ".join(f"{name}={shown(value)}" for name, value in made.items()),
            fix="leave out what belongs to two arms; the labels of all arms are in arms=",
        )
    labels = _labels(arms)
    if reference is None:
        raise _no_reference(f"one of {list(labels)!r}", "no reference")
    place = LabelIndex(labels).code(checked_label(reference, "reference"))
    if place is None:
        raise _no_reference(f"one of {list(labels)!r}", f"reference={shown(reference)}")
    return (labels[place], *labels[:place], *labels[place + 1 :])


def _labels(arms: object) -> tuple[Label, ...]:
    if isinstance(arms, tuple | list):
        labels = tuple(checked_label(label, "arm") for label in arms)
        if len(labels) >= _FEWEST and first_confusable(labels) is None:
            return labels
    raise StudyError(
        "CV-S060",
        "arms= does not list several different labels",
        expected="a tuple of three or more labels that differ as text and as numbers",
        got=f"arms={shown(arms)}",
        fix="list the label of every arm; for two arms use treated= and control=, whose effect needs less noise",
    )


def _no_reference(expected: str, got: str) -> StudyError:
    return StudyError(
        "CV-S062",
        "the reference is not one of the arms",
        expected=expected,
        got=got,
        fix='name the arm that the others are compared with, e.g. arms=("placebo", "low", "high"), '
        'reference="placebo"',
    )
