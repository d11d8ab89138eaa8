; page: src/counterveil/statistics/moments/score_strata.proof.md
; states: for s, s', m in [-L, L]: ||s - m| - |s' - m|| <= L + |m|
; constant: what L + |m| is multiplied by; with 99/100 the statement is false
(define-fun constant () Real 1.0)
(define-fun size ((x Real)) Real (ite (>= x 0) x (- x)))
(declare-const L Real)
(assert (> L 0))
(declare-const s Real)
(assert (and (<= (- L) s) (<= s L)))
(declare-const s2 Real)
(assert (and (<= (- L) s2) (<= s2 L)))
(declare-const m Real)
(assert (and (<= (- L) m) (<= m L)))
(assert (> (size (- (size (- s m)) (size (- s2 m)))) (* constant (+ L (size m)))))
(check-sat)
