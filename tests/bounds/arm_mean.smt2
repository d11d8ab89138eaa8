; page: src/counterveil/rows/linear/arm_mean.proof.md
; states: for y, y', m in [0, 1] and n >= 2: n^2 |((y' - m)^2 - (y - m)^2) (n - 1)/n| / ((n - 1) n) <= 1
; constant: the bound; with 99/100 the statement is false
(define-fun constant () Real 1.0)
(define-fun size ((x Real)) Real (ite (>= x 0) x (- x)))
(declare-const y Real)
(assert (and (<= 0 y) (<= y 1)))
(declare-const y2 Real)
(assert (and (<= 0 y2) (<= y2 1)))
(declare-const m Real)
(assert (and (<= 0 m) (<= m 1)))
(declare-const n Real)
(assert (>= n 2))
(declare-const change Real)
(assert (= (* change (* n (- n 1) n)) (* (- n 1) (- (* (- y2 m) (- y2 m)) (* (- y m) (- y m))))))
(assert (> (* n n (size change)) constant))
(check-sat)
