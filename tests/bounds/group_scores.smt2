; page: src/counterveil/rows/moments/group_scores.proof.md
; states: for r in [-1, 1]: (1-r)^2/4, (1-r^2)/2 and (1+r)^2/4 are at least 0 and add up to at most 1
; constant: the weight of the middle term; with 6/10 the statement is false
(define-fun constant () Real (/ 1 2))
(define-fun low ((r Real)) Real (/ (* (- 1 r) (- 1 r)) 4))
(define-fun middle ((r Real)) Real (* constant (- 1 (* r r))))
(define-fun high ((r Real)) Real (/ (* (+ 1 r) (+ 1 r)) 4))
(declare-const r Real)
(assert (and (<= (- 1) r) (<= r 1)))
(assert (or (> (+ (low r) (middle r) (high r)) 1) (< (low r) 0) (< (middle r) 0) (< (high r) 0)))
(check-sat)
