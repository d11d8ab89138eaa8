"""Studies of cohorts in tables of the OMOP common data model (version 5.4), in DuckDB or PostgreSQL."""

from counterveil.omop.specification import CohortStudy, Specification, cohort_study

__all__ = ["CohortStudy", "Specification", "cohort_study"]
