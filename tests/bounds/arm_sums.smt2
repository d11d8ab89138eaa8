; page: src/counterveil/rows/moments/arm_sums.proof.md
; states: for records (t, y), (t', y') with y, y' in [0, 1]: the sums of y - 1/2 by arm move by at most 1 together
; constant: the bound; with 99/100 the statement is false
(define-fun constant () Real 1.0)
(define-fun size ((x Real)) Real (ite (>= x 0) x (- x)))
(declare-const y Real)
(assert (and (<= 0 y) (<= y 1)))
(declare-const y2 Real)
(assert (and (<= 0 y2) (<= y2 1)))
(declare-const t Bool)
(declare-const t2 Bool)
(define-fun one ((s Bool) (x Real)) Real (ite s (- x 0.5) 0.0))
(assert (> (+ (size (- (one t y) (one t2 y2))) (size (- (one (not t) y) (one (not t2) y2)))) constant))
(check-sat)
