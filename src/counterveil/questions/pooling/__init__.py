"""Private answers of several sites as one: read, compared, weighted and averaged; nothing is spent.

- `documents`, `reading`: what another party sent, bounded before it is used. `agreement`: whether answers
  belong together, and what their average says of itself.
- `averages`, `known`: weights, and the average of one number, from released numbers alone.
- `effects`, `measures`, `tables`, `moments`: answers of one effect, of a measure of both arms' means, of
  several effects, and of second moments. `pool`: the question itself.
"""
