"""Studies: every declaration survives being written and read."""

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from counterveil.data import (
    Binary,
    Categories,
    Drop,
    Fill,
    Observational,
    Outcome,
    Range,
    Study,
    Treatment,
    Trial,
)
from counterveil.data.cells import says_nothing

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8).filter(
    lambda name: name.strip()
)
labels = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=5).filter(
        lambda label: not says_nothing(label) and label.lower() != "inf"
    ),
    st.integers(-9, 9),
)
fractions = st.fractions(min_value=-1000, max_value=1000, max_denominator=1000)


@st.composite
def ranges(draw):
    low = draw(fractions)
    return Range(low, low + draw(st.fractions(min_value="1/100", max_value=1000, max_denominator=100)))


@st.composite
def categories(draw):
    texts = draw(
        st.lists(st.text("abc é\"\\\n\x7f'", min_size=1, max_size=4), min_size=2, max_size=4, unique=True)
    )
    # What looks empty stands for a missing value.
    return Categories([f"{place}: {text}" for place, text in enumerate(texts)])


@st.composite
def studies(draw):
    columns = draw(st.lists(names, min_size=2, max_size=6, unique=True))
    domains = st.one_of(ranges(), categories(), st.just(Binary()), st.just(Binary("yes", "no")))
    covariates = {name: draw(domains) for name in columns[2:]}
    missing = {}
    for name, domain in covariates.items():
        fill = Fill(domain.lo) if isinstance(domain, Range) else Fill(domain.labels[0])
        rule = draw(st.sampled_from([None, Drop(), fill]))
        if rule is not None:
            missing[name] = rule
    bounds = draw(ranges())
    randomised = draw(st.sampled_from([None, True, False]))
    share = draw(st.fractions("1/10", "9/10", max_denominator=50)) if randomised else None
    return Study(
        Treatment(columns[0], treated=draw(labels)),
        Outcome(columns[1], (bounds.lo, bounds.hi)),
        covariates,
        assignment=Trial(share=share) if randomised else Observational(),
        missing=missing,
    )


@given(studies())
def test_documents_give_the_study_back(study):
    assert Study.from_dict(study.to_dict()) == study
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "study.toml"
        path.write_text(study.to_toml(), encoding="utf-8", newline="")
        again = Study.from_toml(path)
    assert again == study
    assert again.fingerprint() == study.fingerprint()
