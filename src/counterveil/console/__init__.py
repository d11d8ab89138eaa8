"""The console: a local web application over the same functions and ledgers as the command line."""
