/* The libm of another machine: loaded before the real one, it moves what that returns by one unit in the last place,
   up, down or not at all, in the same way for equal arguments. Results of few bits, and those equal to the
   argument, are exact and stay. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#define FEW_BITS 0x3FFFFFFu

static uint64_t bits(double x) { uint64_t b; memcpy(&b, &x, sizeof b); return b; }

static double moved(double found, double x, double y) {
    uint64_t b = bits(found), hash = (bits(fabs(x)) ^ bits(fabs(y)) * 31) * 0x9E3779B97F4A7C15u;
    if (!isnormal(found) || found == x || (b & FEW_BITS) == 0) return found;
    b += (hash >> 32) % 3 - 1;
    memcpy(&found, &b, sizeof b);
    return found;
}

#define REAL(name) static __typeof__(name) *real; if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)
#define ONE(name) double name(double x) { REAL(name); return moved(real(x), x, 0); }
#define TWO(name) double name(double x, double y) { REAL(name); return moved(real(x, y), x, y); }

ONE(exp) ONE(exp2) ONE(expm1) ONE(log) ONE(log2) ONE(log10) ONE(log1p) ONE(sin) ONE(cos) ONE(tan) ONE(asin)
ONE(acos) ONE(atan) ONE(sinh) ONE(cosh) ONE(tanh) ONE(asinh) ONE(acosh) ONE(atanh) ONE(erf) ONE(erfc) ONE(lgamma)
ONE(tgamma) ONE(cbrt) TWO(pow) TWO(atan2) TWO(hypot)
