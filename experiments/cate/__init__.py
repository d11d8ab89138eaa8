"""Effects that differ between people: accuracy beside published forms and baselines, bands, audits."""
