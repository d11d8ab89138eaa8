"""Formulas of the proofs, which are written as plain text, set with raised and lowered letters and the usual signs."""

from __future__ import annotations

import re

from tools.check_docs import prose

GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "Delta": "Δ", "epsilon": "ε", "eps": "ε", "eta": "η",
    "theta": "θ", "lambda": "λ", "lam": "λ", "mu": "μ", "xi": "ξ", "rho": "ρ", "sigma": "σ", "tau": "τ", "phi": "φ",
    "psi": "ψ", "Phi": "Φ",
}  # fmt: skip
SIGNS = (("<=", "≤"), (">=", "≥"), ("!=", "≠"), ("+-", "±"), (" -> ", " → "), (" * ", " · "))

_KEPT = re.compile(r"(`[^`]*`|\$[^$]+\$|\]\([^)]*\))")
_GREEK = re.compile(r"(?<![A-Za-z])(?<![A-Za-z]-)(" + "|".join(GREEK) + r")(?![A-Za-z])")
# A short name or a closing bracket, then the mark of an index or of an exponent.
_MARK = re.compile(
    r"(?:(?<![A-Za-z_])(?:[A-Za-zα-ωΔΦ]{1,6}'?|[A-Za-z]{7,8}(?=\^))|[\d)\]|}>'])([_^])(?=[\w({\-+|])(?!\w+\.proof)"
)
_WORD = re.compile(r"\+|-?(?:\|[^|]*\||\w(?:\w|\.(?=\d))*'?)")
_CLOSING = {"(": ")", "{": "}"}


def formulas(text: str) -> str:
    """Return a page whose formulas are set; code, and formulas written in TeX, stay as they are."""
    lines = text.splitlines()
    display = False
    for number, line in prose(text):
        display ^= line.strip().count("$$") == 1
        if not display and not line.startswith(("    ", "#")):
            pieces = _KEPT.split(line)
            lines[number - 1] = "".join(piece if at % 2 else _set(piece) for at, piece in enumerate(pieces))
    return "\n".join(lines) + "\n"


def _set(piece: str) -> str:
    """Return a piece of prose with its signs and letters, then its indices and exponents."""
    for plain, sign in SIGNS:
        piece = piece.replace(plain, sign)
    piece = re.sub(r"<(?=[A-Za-z])", "&lt;", piece)
    piece = re.sub(r"(?<=[.:)] )\[\](?=\s|$)|(?<=\w )\[\](?=\s*$)", "∎", piece)
    piece = _GREEK.sub(lambda match: GREEK[match.group(1)], piece)
    return _raised(piece)


def _raised(piece: str) -> str:
    done = ""
    while match := _MARK.search(piece):
        inside, rest = _argument(piece[match.end() :])
        tag = "sub" if match.group(1) == "_" else "sup"
        done += piece[: match.end() - 1] + f"<{tag}>{_raised(inside)}</{tag}>"
        # An exponent may follow an index: the closing tag stands for the name.
        piece = rest
        if piece.startswith("^"):
            inside, piece = _argument(piece[1:])
            done += f"<sup>{_raised(inside)}</sup>"
    return done + piece


def _argument(text: str) -> tuple[str, str]:
    """Return what is raised or lowered, without braces around it, and the rest."""
    minus = "-" if re.match(r"-[({]", text) else ""
    opening = text[len(minus)]
    closing = _CLOSING.get(opening)
    if closing is None:
        match = _WORD.match(text)
        end = match.end() if match else 1
        return text[:end], text[end:]
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter == opening) - (letter == closing)
        if depth == 0 and letter == closing:
            inside = text[len(minus) + 1 : place]
            return (f"-({inside})" if minus else inside), text[place + 1 :]
    return text[:1], text[1:]
