; page: src/counterveil/rows/moments/arm_balance.proof.md
; states: for u in [-1, 1] and k = 1.665: u^2 + k^2 (u^2 - 1/2)^2 <= 1 + k^2/4
; constant: what k^2 is multiplied by; with 249/1000 the statement is false
(define-fun constant () Real (/ 1 4))
(declare-const u Real)
(assert (and (<= (- 1) u) (<= u 1)))
(define-fun d () Real (- (* u u) 0.5))
(assert (> (+ (* u u) (* (/ 2772225 1000000) d d)) (+ 1 (* (/ 2772225 1000000) constant))))
(check-sat)
