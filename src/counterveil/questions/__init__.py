"""Questions: `ate`, `cate` and the others, each answered through a session.

Each module holds one question: a class of its arguments, which are checked before data or budget are touched,
and a function with the public signature. Estimators (`counterveil.estimators`) plan the releases and compute
the answer; what protects people is proved where rows are summed (`rows/**/*.proof.md`).
"""
