"""Every record-private method on every design, in one table, and how near the automatic choice comes to the best."""
