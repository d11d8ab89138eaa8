; page: src/counterveil/rows/folds/fold_average.proof.md
; states: for e, e' in [-c, c]: |e^2 - e'^2| <= c^2
; constant: what c^2 is multiplied by; with 99/100 the statement is false
(define-fun constant () Real 1.0)
(define-fun size ((x Real)) Real (ite (>= x 0) x (- x)))
(declare-const c Real)
(assert (> c 0))
(declare-const e Real)
(assert (and (<= (- c) e) (<= e c)))
(declare-const e2 Real)
(assert (and (<= (- c) e2) (<= e2 c)))
(assert (> (size (- (* e e) (* e2 e2))) (* constant c c)))
(check-sat)
