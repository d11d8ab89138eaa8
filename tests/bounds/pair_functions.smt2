; page: src/counterveil/rows/pairs/pair_scores.proof.md
; states: for v, v' in [-1, 1]: (v - v')^2 + c (v^2 - v'^2)^2 <= 4 with c = 1
; constant: c; with 3 the statement is false
(define-fun constant () Real 1.0)
(declare-const v Real)
(assert (and (<= (- 1) v) (<= v 1)))
(declare-const v2 Real)
(assert (and (<= (- 1) v2) (<= v2 1)))
(assert (> (+ (* (- v v2) (- v v2)) (* constant (- (* v v) (* v2 v2)) (- (* v v) (* v2 v2)))) 4))
(check-sat)
