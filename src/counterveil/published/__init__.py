"""The papers' forms as printed: claims refuted or asymptotic, run with accept="unproved" only."""
