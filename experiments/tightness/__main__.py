"""Print the tables of docs/reference/mechanisms.md: python -m experiments.tightness"""

from experiments.tightness.tables import SCALE_EPSILONS, deviations, markdown, tightness

print(markdown(["mechanism", "parameters", "claim", "largest loss found", "ratio"], tightness()))
print()
print(markdown(["noise", *(f"epsilon {float(e):g}" for e in SCALE_EPSILONS)], deviations()))
