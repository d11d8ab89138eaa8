; page: src/counterveil/rows/pairs/pair_moments.proof.md
; states: for y, y' in [-1, 1] and s^2 <= 2: (y - y')^2 <= 4 and s^2 + y^2 + y'^2 <= 4
; constant: s^2; with 21/10 the statement is false
(define-fun constant () Real 2.0)
(declare-const y Real)
(assert (and (<= (- 1) y) (<= y 1)))
(declare-const y2 Real)
(assert (and (<= (- 1) y2) (<= y2 1)))
(assert (or (> (* (- y y2) (- y y2)) 4) (> (+ constant (* y y) (* y2 y2)) 4)))
(check-sat)
