"""Effects pooled over sites with unequal sizes and budgets: the published system beside ours."""
