; page: src/counterveil/rows/strata/bounded_strata.proof.md
; states: for y, m1, m0 in [0, 1] and 0 <= a, d <= w: |a y + (d - a) m1 - d m0| <= w
; constant: what w is multiplied by; with 99/100 the statement is false
(define-fun constant () Real 1.0)
(define-fun size ((x Real)) Real (ite (>= x 0) x (- x)))
(declare-const y Real)
(assert (and (<= 0 y) (<= y 1)))
(declare-const m1 Real)
(assert (and (<= 0 m1) (<= m1 1)))
(declare-const m0 Real)
(assert (and (<= 0 m0) (<= m0 1)))
(declare-const w Real)
(declare-const a Real)
(declare-const d Real)
(assert (> w 0))
(assert (and (<= 0 a) (<= a w) (<= 0 d) (<= d w)))
(assert (> (size (- (+ (* a y) (* (- d a) m1)) (* d m0))) (* constant w)))
(check-sat)
