"""The treatment of a study: its column and the labels of its arms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from counterveil.data.domains import Label, Range, arm_labels, checked_label, first_confusable, is_name
from counterveil.data.unknown_arguments import known_fields
from counterveil.errors import refusal

TREATED = 1  # the label that means treated unless the study says otherwise


def column_name(name: object, role: str) -> str:
    """Return the name of a column in this role, or raise CV-S004."""
    if is_name(name):
        return name
    raise refusal("CV-S004", role=role, name=name)


@known_fields
@dataclass(frozen=True, slots=True)
class Treatment:
    """The treatment of a study: a column, and which of its labels are compared.

    Two arms have `treated`, and `control` where its label is to be checked. Three or more arms have `arms`
    and the `reference` that the others are compared with. A dose is a number that is cut at public points;
    every cell of it is an arm.

    Parameters
    ----------
    column : str
        Column of the treatment.
    treated : str, int or float, default 1
        Label that means treated. In a study of two arms every other label is control.
    control : str, int or float, optional
        Label that means control. With it, rows with any third label are refused.
    arms : sequence of labels, or Range with cuts, optional
        Labels of three or more arms; or the range of a dose with cut points, `cv.Range(0, 10).cut(2, 5)`.
    reference : str, int or float, optional
        The arm that the others are compared with; required with labels in `arms`. Of a dose, any dose of the
        reference cell; the lowest cell if omitted.
    others : {"drop"}, optional
        Leave out rows whose label is none of those declared; they are refused if omitted. Which rows are left
        out becomes public. Needs `control` or `arms`.

    Attributes
    ----------
    column, treated, control, arms, reference, others
        As declared, each label in one form for each meaning. `treated` is None where there are `arms`.

    Raises
    ------
    CounterveilError
        Names (CV-S004), labels (CV-S007, CV-S160, CV-S161), arms (CV-S060 to CV-S062, CV-S131), others
        (CV-S122).

    Examples
    --------
    >>> import counterveil as cv
    >>> cv.Treatment("drug", treated="new", control="usual care").control
    'usual care'
    >>> cv.Treatment("dose", arms=("placebo", "low", "high"), reference="placebo").arms
    ('placebo', 'low', 'high')
    """

    column: str
    treated: Label | None = TREATED
    control: Label | None = None
    arms: tuple[Label, ...] | Range | None = None
    reference: Label | None = None
    others: str | None = None

    def __post_init__(self) -> None:
        column_name(self.column, "treatment")
        treated = TREATED if self.treated is None else checked_label(self.treated, "treated")
        control = None if self.control is None else checked_label(self.control, "control")
        two_arms = {"treated": None if treated == TREATED else treated, "control": control}
        labels = arm_labels(self.arms, self.reference, two_arms)
        if labels is None and control is not None and first_confusable((treated, control)) is not None:
            raise refusal("CV-S007b", treated=treated, control=control)
        declared = len(labels or ()) or 1 + (control is not None)
        drops = isinstance(self.others, str) and self.others == "drop"
        if self.others is not None and (not drops or declared < 2):
            raise refusal("CV-S122", others=self.others, labels=declared)
        object.__setattr__(self, "treated", treated if labels is None else None)
        object.__setattr__(self, "control", control)
        if labels is not None:
            object.__setattr__(self, "reference", labels[0])
            object.__setattr__(self, "arms", self.arms if isinstance(self.arms, Range) else labels)

    @classmethod
    def _of(cls, declared: object) -> Treatment:
        """Return a treatment; the name of a column stands for one whose label 1 means treated."""
        return declared if isinstance(declared, Treatment) else cls(declared)  # type: ignore[arg-type]

    def _attributes(self) -> dict[str, Any]:
        """Return what a study knows of its treatment, by the attributes of `Study`."""
        doses = self.arms if isinstance(self.arms, Range) else None
        labels = arm_labels(self.arms, self.reference, {})
        return {
            "treatment": self.column,
            "treated": self.treated,
            "control": self.control,
            "arms": labels,
            "doses": doses,
        }
