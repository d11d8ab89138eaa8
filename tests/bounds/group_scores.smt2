; page: src/counterveil/statistics/moments/group_scores.proof.md
; states: for r, r' in [-1, 1] and k = 1/2: |r - r'| + k |r^2 - r'^2| <= 2
; constant: k; with 6/10 the statement is false
(define-fun constant () Real (/ 1 2))
(define-fun size ((x Real)) Real (ite (>= x 0) x (- x)))
(declare-const r Real)
(assert (and (<= (- 1) r) (<= r 1)))
(declare-const r2 Real)
(assert (and (<= (- 1) r2) (<= r2 1)))
(assert (> (+ (size (- r r2)) (* constant (size (- (* r r) (* r2 r2))))) 2))
(check-sat)
