// The residual branch W2^T relu(W1^T rms(x) + b1)^2 on one block of examples, and what pulls gradients back through it.
#pragma once

#include <cmath>

#include "vectors.h"

constexpr float kEpsilon = 1.1920928955078125e-07f;  // of float32, as in net/branch.py

// W1 (m, 4m), b1 (4m,), W2 (4m, m), row after row.
struct Mlp {
  const float *w1, *b1, *w2;
};

TOYDEPTH_INLINE float* at(float* block, size_t row, int vector) { return block + row * kBlock + vector * kLanes; }
TOYDEPTH_INLINE const float* at(const float* block, size_t row, int vector) {
  return block + row * kBlock + vector * kLanes;
}

// normed = x * scale, scale = 1 / sqrt(mean(x^2) + eps) of every example.
inline void normalise(const float* x, size_t m, float* normed, float* scale) {
  Vector sums[kVectors] = {};
  for (size_t k = 0; k < m; ++k) {
    for (int c = 0; c < kVectors; ++c) sums[c] += load(at(x, k, c)) * load(at(x, k, c));
  }
  for (int c = 0; c < kVectors; ++c) store(scale + c * kLanes, sums[c]);
  for (int i = 0; i < kBlock; ++i) scale[i] = 1.0f / std::sqrt(scale[i] / static_cast<float>(m) + kEpsilon);
  for (size_t k = 0; k < m; ++k) {
    for (int c = 0; c < kVectors; ++c) store(at(normed, k, c), load(at(x, k, c)) * load(scale + c * kLanes));
  }
}

// active = relu(W1^T normed + b1), rows j ... j + R - 1; its square goes to `squared`.
template <int R>
TOYDEPTH_INLINE void activate(Mlp mlp, size_t j, size_t m, const float* normed, float* squared,
                              Vector (&active)[R][kVectors]) {
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < kVectors; ++c) active[r][c] = spread(mlp.b1[j + r]);
  }
  add_product<R>(mlp.w1 + j, 1, 4 * m, m, normed, active);
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < kVectors; ++c) {
      active[r][c] = relu(active[r][c]);
      store(at(squared, j + r, c), active[r][c] * active[r][c]);
    }
  }
}

// y = base + factor * mlp(rms(x)); y may be either. Scratch: normed (m), squared (4m), scale (1 row), each a block.
inline void step_forward(const float* x, const float* base, float factor, float* y, size_t m, Mlp mlp, float* normed,
                         float* squared, float* scale) {
  normalise(x, m, normed, scale);
  by_rows(4 * m, [&](size_t j, auto rows) TOYDEPTH_INLINED {
    constexpr int R = decltype(rows)::value;
    Vector active[R][kVectors];
    activate<R>(mlp, j, m, normed, squared, active);
  });
  by_rows(m, [&](size_t o, auto rows) TOYDEPTH_INLINED {
    constexpr int R = decltype(rows)::value;
    Vector sums[R][kVectors] = {};
    add_product<R>(mlp.w2 + o, 1, m, 4 * m, squared, sums);
    for (int r = 0; r < R; ++r) {
      for (int c = 0; c < kVectors; ++c) {
        store(at(y, o + r, c), load(at(base, o + r, c)) + factor * sums[r][c]);
      }
    }
  });
}

// dx = base + J^T dy, J the Jacobian of mlp(rms(x)); base may be dy. Leaves what the gradients of the weights are made
// of: normed (m), squared (4m), dhidden (4m). Scratch: dnormed (m), scale (1 row).
inline void pull_back(const float* x, const float* dy, const float* base, float* dx, size_t m, Mlp mlp, float* normed,
                      float* squared, float* dhidden, float* dnormed, float* scale) {
  normalise(x, m, normed, scale);
  by_rows(4 * m, [&](size_t j, auto rows) TOYDEPTH_INLINED {
    constexpr int R = decltype(rows)::value;
    Vector active[R][kVectors], dsquared[R][kVectors] = {};
    activate<R>(mlp, j, m, normed, squared, active);
    for (int r = 0; r < R; ++r) {
      for (int c = 0; c < kVectors; ++c) store(at(dhidden, j + r, c), active[r][c] + active[r][c]);
    }
    add_product<R>(mlp.w2 + j * m, m, 1, m, dy, dsquared);
    for (int r = 0; r < R; ++r) {
      for (int c = 0; c < kVectors; ++c) {
        store(at(dhidden, j + r, c), dsquared[r][c] * load(at(dhidden, j + r, c)));
      }
    }
  });
  Vector mean[kVectors] = {};
  by_rows(m, [&](size_t k, auto rows) TOYDEPTH_INLINED {
    constexpr int R = decltype(rows)::value;
    Vector sums[R][kVectors] = {};
    add_product<R>(mlp.w1 + k * 4 * m, 4 * m, 1, 4 * m, dhidden, sums);
    for (int r = 0; r < R; ++r) {
      for (int c = 0; c < kVectors; ++c) {
        mean[c] += sums[r][c] * load(at(normed, k + r, c));
        store(at(dnormed, k + r, c), sums[r][c]);
      }
    }
  });
  for (int c = 0; c < kVectors; ++c) mean[c] /= static_cast<float>(m);
  // Through rms: what points along the normed vector changes nothing.
  for (size_t k = 0; k < m; ++k) {
    for (int c = 0; c < kVectors; ++c) {
      const Vector across = load(at(dnormed, k, c)) - load(at(normed, k, c)) * mean[c];
      store(at(dx, k, c), load(at(base, k, c)) + load(scale + c * kLanes) * across);
    }
  }
}
