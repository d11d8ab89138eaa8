"""What a site may say about numbers that a method releases: bounds that follow from the method's plan.

A coordinator who knows the question, the declaration and the number of rows of a site knows which noise the
method has to draw there, hence what the figures of an honest answer can be. Each method has a table: a
function from the public numbers (`SiteQuestion`) and the figures that a site sent to bounds
(`counterveil.results.site_bounds`). Sensitivities and budgets come from the declarations in
`counterveil.rows` and from the plans of the estimators: none is written twice. Modules:

- `site_question`: the public numbers. `noise`: figures of a noise distribution, what a budget pays for, and
  where an estimate and its variance may lie for a given error.
- `averages`: weighted averages of private outcomes. `pairs`: effects of private pairs of treatment and
  outcome. `records`: effects and means of private records. `tables`: tables of times and second moments.
- `statements`: what an answer may say of itself.
- `methods`: which table belongs to which method.
"""
