"""The refusals of data that do not fit a study: they name the column, never a row or a value.

They are raised while a table is being attached, before anything can be spent, and are meant for the data holder.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from counterveil.errors import DataError, Refusal

_LISTED = 12


def nearest(name: object, known: Iterable[object], owner: str) -> str:
    """Return advice on which known name was probably meant."""
    names = [str(candidate) for candidate in known]
    probably = meant(name, names)
    if probably is not None:
        return f"did you mean {probably!r}?"
    listed = ", ".join(repr(candidate) for candidate in names[:_LISTED])
    more = ", ..." if len(names) > _LISTED else ""
    return f"{owner} has: {listed}{more}" if names else f"{owner} has no columns"


def meant(name: object, known: Iterable[str]) -> str | None:
    """Return the known name that was probably meant, None where none is close."""
    folded = {candidate.casefold(): candidate for candidate in known}
    close = difflib.get_close_matches(str(name).casefold(), folded, n=1, cutoff=0.6)
    return folded[close[0]] if close else None


def no_such_column(name: str, known: Iterable[object]) -> DataError:
    """Return CV-D001."""
    return DataError(
        "CV-D001",
        f"column {name!r} is not in the data",
        expected="every column named in the study",
        got=f"no {name!r}",
        fix=nearest(name, known, "the data"),
    )


no_header = Refusal(
    "CV-D001",
    "column {name!r} is not in the data",
    expected="a header line with the column names",
    got="a first line without any of the study's columns",
    fix="put the column names on the first line, or correct the names in the study",
)
text_for_number = Refusal(
    "CV-D002",
    "column {name!r} holds text where numbers are needed",
    expected="numbers, or text that can be read as a number",
    got="cells that are not numbers",
    fix="write numbers with a point and without thousands separators, dates as days since a public one; or "
    "declare a covariate as Categories([...])",
)
missing_without_rule = Refusal(
    "CV-D003",
    "column {name!r} has missing values and the study has no rule for them",
    expected="no missing values, or a rule for this column",
    got="at least one missing value",
    fix="add missing={{{name!r}: cv.drafting.Fill(...)}} (a public constant) or cv.drafting.Drop() (which rows have "
    "missing values becomes public)",
)
no_person = Refusal(
    "CV-D019",
    "column {name!r} does not say whose a row is",
    expected="a value in every row, the same in all rows of a person or cluster",
    got="at least one missing value, or a float that is no whole number below 2^53",
    fix="leave these rows out or identify them; a row of nobody cannot be protected as part of a person or counted "
    "as part of a cluster",
)
varies = Refusal(
    "CV-D020",
    "column {name!r} differs between rows of one person or cluster",
    expected="one value in all rows of a person, or of a cluster that is treated or protected as a whole",
    got="a person or cluster with two values",
    fix="declare which of them counts: per_person={{{name!r}: ...}} or per_cluster={{...}}, with order= for 'first' "
    "and 'last'; a person is in one cluster, and a treatment assigned by cluster is that of all its rows",
)
staggered = Refusal(
    "CV-D021",
    "treatment {name!r} does not start for everyone treated at the end of the periods before",
    expected="people who are treated in every period of after= and in none of before=, or never",
    got="a person whose treatment starts at another date, or ends",
    fix="ask for each date by itself: the people who start then and those who never do, with before= and after= of "
    "that date",
)
constant_treatment = Refusal(
    "CV-D004",
    "treatment {name!r} is the same in every row",
    expected="treated and control rows",
    got="one label only",
    fix="check that the column is the treatment and that the rows of both arms are in the data",
)


def strange_treatment(name: str, treated: object, control: object) -> DataError:
    """Return CV-D005."""
    other = "exactly one other label" if control is None else repr(control)
    return DataError(
        "CV-D005",
        f"treatment {name!r} has labels other than the two arms",
        expected=f"{treated!r} (treated) and {other} (control)",
        got="other labels, or no row labelled as treated",
        fix="set treated= and control= to the labels in the column, or leave other arms out of the data",
    )


def undeclared_arm(name: str, arms: Iterable[object]) -> DataError:
    """Return CV-D017."""
    return DataError(
        "CV-D017",
        f"treatment {name!r} has a label that is not one of the arms",
        expected=f"only {', '.join(repr(label) for label in arms)}",
        got="at least one other label",
        fix="list the label of every arm in arms=, or leave the rows of other arms out of the data",
    )


empty_arm = Refusal(
    "CV-D018",
    "an arm of treatment {name!r} has no rows",
    expected="at least two rows in each arm that the study lists",
    got="an arm with none",
    fix="check the spelling of the labels in the column, or remove the arm from arms=",
)
undeclared_category = Refusal(
    "CV-D006",
    "column {name!r} holds a category that is not declared",
    expected="the labels listed in Categories([...])",
    got="at least one other label",
    fix="list every label the column may hold, from its public description",
)


def not_binary(name: str, labels: Iterable[object]) -> DataError:
    """Return CV-D007."""
    return DataError(
        "CV-D007",
        f"column {name!r} is not binary",
        expected=f"only {' and '.join(repr(label) for label in labels)}",
        got="at least one other value",
        fix="name the two labels with Binary(one=..., zero=...), or declare Categories or a Range",
    )


def not_events(name: str) -> DataError:
    """Return CV-D090."""
    return DataError(
        "CV-D090",
        f"column {name!r} does not say whether the event happened",
        expected="1 where the event happened and 0 where follow-up ended without it",
        got="at least one other value",
        fix="recode it beforehand, for example status 1 and 2 of R's survival data to 0 and 1",
    )


empty_table = Refusal(
    "CV-D008",
    "the data have no rows",
    expected="at least two rows in each arm",
    got="no rows, or none left after Drop()",
    fix="check the source and the rules for missing values",
)
small_arm = Refusal(
    "CV-D009",
    "an arm of treatment {name!r} has fewer than two rows",
    expected="at least two rows in each arm",
    got="fewer",
    fix="use data with more people in each arm",
)


def duplicated_columns(names: Iterable[object]) -> DataError:
    """Return CV-D010."""
    return DataError(
        "CV-D010",
        "two columns have the same name",
        expected="each column name once (in SQL and Parquet, names are not case-sensitive)",
        got=", ".join(sorted({repr(name) for name in names})),
        fix="rename or drop one of them",
    )


unsupported_source = Refusal(
    "CV-D011",
    "unsupported data source",
    expected="a pandas, polars or pyarrow frame, a path to .csv, .tsv (or .gz of these) or .parquet, a "
    "DuckDB relation, or a dictionary of arrays",
    got="{kind}",
    fix="convert the data to one of these; save an Excel sheet as CSV UTF-8",
)
no_such_file = Refusal(
    "CV-D012",
    "the file does not exist",
    expected="a path to an existing file",
    got="{name!r}",
    fix="check the path and the working directory",
)


def unreadable_file(name: str, form: str) -> DataError:
    """Return CV-D015."""
    return DataError(
        "CV-D015",
        "the file cannot be read",
        expected=f"{form}",
        got=repr(name),
        fix="look for another encoding (Excel: save as CSV UTF-8) and for lines with too many or too few cells; or "
        "write it as Parquet",
    )


unreadable_type = Refusal(
    "CV-D013",
    "column {name!r} has an unsupported type",
    expected="numbers, booleans or text",
    got="{kind}",
    fix="turn dates and durations into numbers (for instance days since a public date) beforehand",
)
failed_source = Refusal(
    "CV-D016",
    "the source failed while it was being read",
    expected="a relation or a lazy frame that can be computed",
    got="{kind}",
    fix="compute it yourself to see its message, which may quote rows and is therefore not shown here",
)


def uneven_arrays(names: Iterable[str]) -> DataError:
    """Return CV-D014."""
    return DataError(
        "CV-D014",
        "the arrays do not form a table",
        expected="one-dimensional arrays of equal length",
        got=f"columns {', '.join(repr(name) for name in names)}",
        fix="give each column one entry per row",
    )


rows_of_a_database = Refusal(
    "CV-D050",
    "the rows are in Spark, and this method needs them in one place",
    expected="a method that adds rows up where they are: doubly_robust, trial or stratified with "
    "protects='record'; difference_in_means or stratified with protects='outcome'; groups, policies, periods and "
    "effects as functions of records; overlap and moments",
    got="{method}",
    fix="nothing was spent: use one of these methods; or, if your policy allows it, write the rows to a Parquet file "
    "and read that",
)


def unknown_database(kind: str, known: Iterable[str]) -> DataError:
    """Return CV-D051."""
    return DataError(
        "CV-D051",
        "unsupported database engine",
        expected=f"an Ibis table on {', '.join(known)}",
        got=kind,
        fix="copy the table to one of these databases, or to a Parquet file",
    )


text_in_a_database = Refusal(
    "CV-D052",
    "column {name!r} holds text in the database where numbers are needed",
    expected="a numeric column: databases convert text to numbers in different ways",
    got="a column of text",
    fix="cast it there, e.g. table.mutate({name}=table[{name!r}].cast('float64'))",
)


def too_many_groups(most: int, rows: int, strata: int) -> DataError:
    """Return CV-D055, from the number of rows and of declared strata alone."""
    return DataError(
        "CV-D055",
        "the study declares more strata than a database engine can count",
        expected=f"at most {most} rows, or at most {most // 2} strata",
        got=f"{rows} rows and {strata} strata",
        fix="use fewer covariates (strata=...) or fewer cut points",
    )


too_many_spellings = Refusal(
    "CV-D080",
    "the labels are spelled in too many ways",
    expected="at most {most} different combinations of bins and labels as spelled in the data",
    got="more",
    fix="spell each label in one way: 1, not 1, 1.0 and 01",
)
changed_table = Refusal(
    "CV-D056",
    "the table changed between two queries",
    expected="rows that stay the same while they are counted",
    got="counts that differ between the two queries",
    fix="query a snapshot: a copy of the table, or a materialised view",
)
unusable_scratch = Refusal(
    "CV-D057",
    "the scratch folder cannot be used",
    expected="{variable} set to a writable folder, or 'none'",
    got="a folder that does not exist or is not writable",
    fix="set {variable} to such a folder, to 'none' to read the source again at every pass, or unset it",
)
lost_scratch = Refusal(
    "CV-D058",
    "rows in the scratch folder cannot be read back",
    expected="a readable scratch file",
    got="a disk error, or a truncated file",
    fix="check the disk, or set COUNTERVEIL_SCRATCH to a folder on another disk",
)
wrong_cores = Refusal(
    "CV-D059",
    "the number of cores is invalid",
    expected="{variable} set to a whole number from 1 to 1024",
    got="something else",
    fix="set {variable} to such a number, or unset it to use all cores",
)
no_executors = Refusal(
    "CV-D060",
    "the executors of Spark cannot run a pass",
    expected="counterveil {version} and pyarrow in the Python of every executor",
    got="another version, or none",
    fix="install the same version there, e.g. with spark.archives or in the cluster's image",
)
too_wide_for_driver = Refusal(
    "CV-D061",
    "the sums of so many features could not be brought from Spark's executors to its driver",
    expected="sums of at most {limit} bytes (spark.driver.maxResultSize)",
    got="{features} features, whose sums may take {size} bytes",
    fix="start the session with a larger spark.driver.maxResultSize, or declare fewer covariates and labels",
)
