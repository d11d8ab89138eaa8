"""Treatment and outcome private together: coverage and width beside AIPW without privacy."""
