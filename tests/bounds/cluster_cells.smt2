; page: src/counterveil/rows/strata/cluster_cells.proof.md
; states: for y, y' in [0, 1]: |y - 1/2| + |y' - 1/2| <= 1
; constant: the bound; with 99/100 the statement is false
(define-fun constant () Real 1.0)
(define-fun size ((x Real)) Real (ite (>= x 0) x (- x)))
(declare-const y Real)
(assert (and (<= 0 y) (<= y 1)))
(declare-const y2 Real)
(assert (and (<= 0 y2) (<= y2 1)))
(assert (> (+ (size (- y 0.5)) (size (- y2 0.5))) constant))
(check-sat)
