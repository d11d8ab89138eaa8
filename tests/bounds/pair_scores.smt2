; page: src/counterveil/rows/pairs/pair_scores.proof.md
; states: for v, v' in [-1, 1]: |v - v'| + c |v^2 - v'^2| <= 2 and |v| + |v'| + c (v^2 + v'^2)/2 <= 5/2 with c = 1/2
; constant: c; with 3/5 the statement is false
(define-fun constant () Real (/ 1 2))
(define-fun size ((x Real)) Real (ite (>= x 0) x (- x)))
(declare-const v Real)
(assert (and (<= (- 1) v) (<= v 1)))
(declare-const v2 Real)
(assert (and (<= (- 1) v2) (<= v2 1)))
(assert (or (> (+ (size (- v v2)) (* constant (size (- (* v v) (* v2 v2))))) 2)
  (> (+ (size v) (size v2) (* constant (/ (+ (* v v) (* v2 v2)) 2))) (/ 5 2))))
(check-sat)
