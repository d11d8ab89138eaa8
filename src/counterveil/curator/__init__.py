"""The gate: the only place where a table, a mechanism and a ledger meet."""
