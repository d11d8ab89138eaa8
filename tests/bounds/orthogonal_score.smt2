; page: src/counterveil/rows/moments/orthogonal_score.proof.md
; states: for lengths x, x' in [0, 1] of u rho and u' rho', k = 1.665: (x + x')^2 + k^2 (x^2 - x'^2)^2 <= 4
; constant: k^2; with 28/10 the statement is false
(define-fun constant () Real (/ 2772225 1000000))
(declare-const x Real)
(assert (and (<= 0 x) (<= x 1)))
(declare-const x2 Real)
(assert (and (<= 0 x2) (<= x2 1)))
(define-fun d () Real (- (* x x) (* x2 x2)))
(assert (> (+ (* (+ x x2) (+ x x2)) (* constant d d)) 4))
(check-sat)
