"""Tables and pages: data in, text out; never spends."""
