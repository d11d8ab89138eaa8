"""All code that sees private rows: what is summed over them, how far one person moves it, and the proofs of that."""
