; page: src/counterveil/rows/moments/inverse_weighting.proof.md
; states: for u, v in [-1, 1] and s = 1.665: (u - v)^2 + s^2 (u^2 - v^2)^2 <= 4
; constant: s^2; with 28/10 the statement is false
(define-fun constant () Real (/ 2772225 1000000))
(declare-const u Real)
(assert (and (<= (- 1) u) (<= u 1)))
(declare-const v Real)
(assert (and (<= (- 1) v) (<= v 1)))
(define-fun d () Real (- (* u u) (* v v)))
(assert (> (+ (* (- u v) (- u v)) (* constant d d)) 4))
(check-sat)
