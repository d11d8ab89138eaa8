; page: src/counterveil/rows/moments/record_moments.proof.md
; states: for t, t', y, y' in [-1, 1] and k = 1.665: (t - t')^2 + (y - y')^2 + k^2 (y^2 - y'^2)^2 <= 8
; constant: the bound; with 799/100 the statement is false
(define-fun constant () Real 8.0)
(declare-const t Real)
(assert (and (<= (- 1) t) (<= t 1)))
(declare-const t2 Real)
(assert (and (<= (- 1) t2) (<= t2 1)))
(declare-const y Real)
(assert (and (<= (- 1) y) (<= y 1)))
(declare-const y2 Real)
(assert (and (<= (- 1) y2) (<= y2 1)))
(define-fun d () Real (- (* y y) (* y2 y2)))
(assert (> (+ (* (- t t2) (- t t2)) (* (- y y2) (- y y2)) (* (/ 2772225 1000000) d d)) constant))
(check-sat)
