"""Fit the polynomial behind the float32 erf, and print its errors.

    python tests/tools/fit_erf.py

erf(x) is written as tanh(x P(x²)). P is fitted to atanh(erf(x)) / x on
0 < x <= LIMIT by weighted least squares; Lawson's reweighting brings the
largest error of erf itself close to its minimum.
"""

import math

import numpy as np

DEGREE, LIMIT = 6, 4.2


def fit(degree=DEGREE, limit=LIMIT, points=20_001, rounds=400):
    """The coefficients of P, lowest power first, in float64."""
    x = np.linspace(1e-3, limit, points)
    erf = np.array([math.erf(v) for v in x])
    erfc = np.array([math.erfc(v) for v in x])
    target = 0.5 * np.log((1 + erf) / erfc) / x
    slope = erfc * (1 + erf) * x  # d erf / d P
    basis = np.polynomial.chebyshev.chebvander(2 * (x / limit) ** 2 - 1, degree)
    weight = np.full(points, 1 / points)
    for _ in range(rounds):
        scale = slope * np.sqrt(weight)
        c, *_ = np.linalg.lstsq(basis * scale[:, None], target * scale, rcond=None)
        error = np.abs(np.tanh(x * (basis @ c)) - erf)
        weight *= error / error.max() + 1e-3
        weight /= weight.sum()
    power = np.polynomial.chebyshev.cheb2poly(c)
    return np.polynomial.Polynomial(power)(
        np.polynomial.Polynomial([-1, 2 / limit**2])
    ).coef


if __name__ == "__main__":
    from bert_np.functional import erf, gelu

    print("coefficients:", ", ".join(f"{c:.9e}" for c in fit()))
    x = np.linspace(-7, 7, 2_000_001).astype(np.float32)
    exact = np.array([math.erf(v) for v in x.tolist()])
    print(f"largest error of float32 erf:  {np.abs(erf(x) - exact).max():.2e}")
    exact = gelu(x.astype(np.float64))
    print(f"largest error of float32 gelu: {np.abs(gelu(x) - exact).max():.2e}")
