"""Questions: `ate`, `cate` and the others, each answered through a session."""
