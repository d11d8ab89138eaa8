"""Effects at queries as they were published (DP-CATE): kept to be compared with; their claim is refuted."""
