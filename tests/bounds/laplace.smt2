; page: src/counterveil/mechanisms/laplace.proof.md
; states: for |v - v'| <= D: ||x - v| - |x - v'|| <= D
; constant: what D is multiplied by; with 99/100 the statement is false
(define-fun constant () Real 1.0)
(define-fun size ((x Real)) Real (ite (>= x 0) x (- x)))
(declare-const x Real)
(declare-const v Real)
(declare-const v2 Real)
(declare-const D Real)
(assert (> D 0))
(assert (<= (size (- v v2)) D))
(assert (> (size (- (size (- x v)) (size (- x v2)))) (* constant D)))
(check-sat)
