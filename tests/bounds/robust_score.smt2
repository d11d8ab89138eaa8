; page: src/counterveil/published/robust_score.proof.md
; states: for y, m1, m0 in [-1/2, 1/2], 0 < xi <= p <= 1 - xi and t in {0, 1}: xi |phi| <= 1
; constant: the bound; with 99/100 the statement is false
(define-fun constant () Real 1.0)
(define-fun size ((x Real)) Real (ite (>= x 0) x (- x)))
(declare-const y Real)
(assert (and (<= (- 0.5) y) (<= y 0.5)))
(declare-const m1 Real)
(assert (and (<= (- 0.5) m1) (<= m1 0.5)))
(declare-const m0 Real)
(assert (and (<= (- 0.5) m0) (<= m0 0.5)))
(declare-const xi Real)
(declare-const p Real)
(assert (and (< 0 xi) (<= xi p) (<= p (- 1 xi))))
(declare-const t Bool)
(declare-const weight Real)
; weight = 1/p for the treated, 1/(1-p) for the others
(assert (= (* weight (ite t p (- 1 p))) 1))
(define-fun phi () Real (+ (- m1 m0) (ite t (* (- y m1) weight) (- (* (- y m0) weight)))))
(assert (> (* xi (size phi)) constant))
(check-sat)
