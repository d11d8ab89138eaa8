; page: src/counterveil/rows/linear/linear_estimate.proof.md
; states: for y, y', z in [0, 1]: |(y' - z)^2 - (y - z)^2| / 2 <= 1/2
; constant: the bound; with 49/100 the statement is false
(define-fun constant () Real (/ 1 2))
(define-fun size ((x Real)) Real (ite (>= x 0) x (- x)))
(declare-const y Real)
(assert (and (<= 0 y) (<= y 1)))
(declare-const y2 Real)
(assert (and (<= 0 y2) (<= y2 1)))
(declare-const z Real)
(assert (and (<= 0 z) (<= z 1)))
(assert (> (/ (size (- (* (- y2 z) (- y2 z)) (* (- y z) (- y z)))) 2) constant))
(check-sat)
