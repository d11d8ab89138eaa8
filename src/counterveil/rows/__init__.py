"""All code that sees private rows: exact sums, how far one person moves each, and the proofs of that.

Every module adds up something of the rows, and names the `*.proof.md` page that bounds how far one person's
private values move the sum. Sums leave through the *gate*, which adds noise calibrated to the bound and lets
each release that the request's plan has paid for through once.
"""
