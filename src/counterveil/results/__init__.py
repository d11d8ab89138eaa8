"""What was asked and what was answered: questions, results, and how they are stored and read back."""
