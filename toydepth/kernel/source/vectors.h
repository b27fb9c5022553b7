// Products of small matrices with blocks of examples, in vectors of the processor's own width.
//
// A block holds kBlock examples of some rows, row after row, each row contiguous: it is what a core has in its nearest
// cache. The sums of a group of rows fit in the registers; sizes were measured for AVX-512 only (docs/lab_log.md).
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#if defined(__AVX512F__)
constexpr int kLanes = 16, kVectors = 4, kRows = 4, kDotRows = 4, kDotColumns = 4, kOuterRows = 12;
#elif defined(__AVX__)
constexpr int kLanes = 8, kVectors = 2, kRows = 6, kDotRows = 4, kDotColumns = 2, kOuterRows = 6;
#else
constexpr int kLanes = 4, kVectors = 4, kRows = 4, kDotRows = 2, kDotColumns = 2, kOuterRows = 8;
#endif
constexpr int kBlock = kLanes * kVectors;
static_assert(64 % kBlock == 0, "the Python side pads batches to multiples of 64");
static_assert(kDotRows * kDotColumns == kLanes, "a block of sums of products folds into one vector");

#define TOYDEPTH_INLINED __attribute__((always_inline))
#define TOYDEPTH_INLINE static inline TOYDEPTH_INLINED

typedef float Vector __attribute__((vector_size(kLanes * sizeof(float))));
// The same in memory, at any address: XLA's arrays usually come aligned, but need not.
typedef float Stored __attribute__((vector_size(kLanes * sizeof(float)), aligned(alignof(float)), may_alias));

TOYDEPTH_INLINE Vector load(const float* from) { return *reinterpret_cast<const Stored*>(from); }
TOYDEPTH_INLINE void store(float* to, Vector value) { *reinterpret_cast<Stored*>(to) = value; }
TOYDEPTH_INLINE Vector spread(float value) { return value - Vector{}; }
// In a register from here on: compilers else read memory once more in every product that needs the value.
TOYDEPTH_INLINE Vector held(Vector value) {
#if defined(__x86_64__)
  asm("" : "+v"(value));
#elif defined(__aarch64__)
  asm("" : "+w"(value));
#endif
  return value;
}
// NaN stays NaN: an arm that diverges must be seen to.
TOYDEPTH_INLINE Vector relu(Vector value) { return value < Vector{} ? Vector{} : value; }

// sums[r] += sum over k of weights[r * row + k * step] x block[k], k < terms.
template <int R>
TOYDEPTH_INLINE void add_product(const float* weights, size_t row, size_t step, size_t terms, const float* block,
                                 Vector (&sums)[R][kVectors]) {
  for (size_t k = 0; k < terms; ++k, block += kBlock) {
    Vector values[kVectors];
    for (int c = 0; c < kVectors; ++c) values[c] = held(load(block + c * kLanes));
    for (int r = 0; r < R; ++r) {
      const Vector weight = held(spread(weights[r * row + k * step]));
      for (int c = 0; c < kVectors; ++c) sums[r][c] += weight * values[c];
    }
  }
}

// Calls body(first, integral_constant<int, R>) for groups of R rows that make up `rows`.
template <class Body>
TOYDEPTH_INLINE void by_rows(size_t rows, Body body) {
  size_t row = 0;
  for (; row + kRows <= rows; row += kRows) body(row, std::integral_constant<int, kRows>{});
  for (; row + 2 <= rows; row += 2) body(row, std::integral_constant<int, 2>{});
  for (; row < rows; ++row) body(row, std::integral_constant<int, 1>{});
}

// The index, in two vectors of partial sums of 2 H lanes one after the other, of lane i of the first halves; the second
// halves lie H further.
template <int H>
constexpr int fold_index(int i) {
  const int group = i / H, groups = kLanes / (2 * H);
  return (group / groups) * kLanes + (group % groups) * 2 * H + i % H;
}

template <int H, size_t... I>
TOYDEPTH_INLINE Vector fold(Vector a, Vector b, std::index_sequence<I...>) {
  return __builtin_shufflevector(a, b, fold_index<H>(I)...) +
         __builtin_shufflevector(a, b, (fold_index<H>(I) + H)...);
}

// vectors[0] = the sums over lanes of the N = kLanes vectors, in order.
template <int N, int H>
TOYDEPTH_INLINE void sum_lanes(Vector* vectors) {
  if constexpr (H >= 1) {
    for (int i = 0; i < N / 2; ++i) {
      vectors[i] = fold<H>(vectors[2 * i], vectors[2 * i + 1], std::make_index_sequence<kLanes>{});
    }
    sum_lanes<N / 2, H / 2>(vectors);
  }
}

// What a run of blocks holds of one matrix (rows, examples): block n begins at data + n * rows * kBlock.
struct Rows {
  const float* data;
  size_t rows;
};

// Where sums of products go, out[i * stride_a + j * stride_b], and whether they are added to what is there.
struct Place {
  float* out;
  size_t stride_a, stride_b;
  bool add;
  Place from(size_t i, size_t j) const { return {out + i * stride_a + j * stride_b, stride_a, stride_b, add}; }
  void put(size_t i, size_t j, float value) const {
    float& there = out[i * stride_a + j * stride_b];
    there = add ? there + value : value;
  }
};

template <int A, int B>
TOYDEPTH_INLINE void dot_group(Rows a, size_t i, Rows b, size_t j, size_t blocks, Place place) {
  Vector sums[A * B] = {};
  const float *of_a = a.data + i * kBlock, *of_b = b.data + j * kBlock;
  for (size_t n = 0; n < blocks; ++n, of_a += a.rows * kBlock, of_b += b.rows * kBlock) {
    for (int c = 0; c < kVectors; ++c) {
      Vector values[B];
      for (int q = 0; q < B; ++q) values[q] = held(load(of_b + q * kBlock + c * kLanes));
      for (int p = 0; p < A; ++p) {
        const Vector value = held(load(of_a + p * kBlock + c * kLanes));
        for (int q = 0; q < B; ++q) sums[p * B + q] += value * values[q];
      }
    }
  }
  float found[A * B];
  if constexpr (A * B == kLanes) {
    sum_lanes<kLanes, kLanes / 2>(sums);
    for (int k = 0; k < A * B; ++k) found[k] = sums[0][k];
  } else {
    for (int k = 0; k < A * B; ++k) {
      found[k] = 0.0f;
      for (int lane = 0; lane < kLanes; ++lane) found[k] += sums[k][lane];
    }
  }
  for (int p = 0; p < A; ++p) {
    for (int q = 0; q < B; ++q) place.put(i + p, j + q, found[p * B + q]);
  }
}

// place[i, j] = sum over examples of a[i] b[j], for any number of rows.
inline void dot_rows(Rows a, Rows b, size_t blocks, Place place) {
  size_t i = 0;
  for (; i + kDotRows <= a.rows; i += kDotRows) {
    size_t j = 0;
    for (; j + kDotColumns <= b.rows; j += kDotColumns) {
      dot_group<kDotRows, kDotColumns>(a, i, b, j, blocks, place);
    }
    for (; j < b.rows; ++j) dot_group<kDotRows, 1>(a, i, b, j, blocks, place);
  }
  for (; i < a.rows; ++i) {
    for (size_t j = 0; j < b.rows; ++j) dot_group<1, 1>(a, i, b, j, blocks, place);
  }
}

template <size_t... I>
TOYDEPTH_INLINE void interleave(Vector a, Vector b, Vector& low, Vector& high, std::index_sequence<I...>) {
  low = __builtin_shufflevector(a, b, (I / 2 + (I % 2) * kLanes)...);
  high = __builtin_shufflevector(a, b, (I / 2 + (I % 2) * kLanes + kLanes / 2)...);
}

// to[e * rows + k] = from[k * kBlock + e] of a block; rows a multiple of kLanes. As perfect shuffles.
inline void transpose_block(const float* from, size_t rows, float* to) {
  for (size_t k = 0; k < rows; k += kLanes) {
    for (int c = 0; c < kVectors; ++c) {
      Vector now[kLanes], next[kLanes];
      for (int i = 0; i < kLanes; ++i) now[i] = load(from + (k + i) * kBlock + c * kLanes);
      for (int stage = 1; stage < kLanes; stage *= 2) {
        for (int i = 0; i < kLanes / 2; ++i) {
          interleave(now[i], now[i + kLanes / 2], next[2 * i], next[2 * i + 1], std::make_index_sequence<kLanes>{});
        }
        for (int i = 0; i < kLanes; ++i) now[i] = next[i];
      }
      for (int i = 0; i < kLanes; ++i) store(to + (c * kLanes + i) * rows + k, now[i]);
    }
  }
}

// One group of rows of a against V vectors of rows of b, transposed: each example's rows are contiguous.
template <int R, int V>
TOYDEPTH_INLINE void outer_group(const float* a, size_t rows_a, const float* b, size_t rows_b, size_t blocks,
                                 Place place) {
  Vector sums[R][V] = {};
  for (size_t n = 0; n < blocks; ++n, a += rows_a * kBlock) {
    for (int e = 0; e < kBlock; ++e, b += rows_b) {
      Vector values[V];
      for (int c = 0; c < V; ++c) values[c] = held(load(b + c * kLanes));
      for (int r = 0; r < R; ++r) {
        const Vector value = held(spread(a[r * kBlock + e]));
        for (int c = 0; c < V; ++c) sums[r][c] += value * values[c];
      }
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int k = 0; k < V * kLanes; ++k) place.put(r, k, sums[r][k / kLanes][k % kLanes]);
  }
}

template <int R>
inline void outer_group_rows(const float* a, size_t rows_a, const float* b, size_t rows_b, size_t blocks,
                             Place place) {
  size_t j = 0;
  for (; j + 2 * kLanes <= rows_b; j += 2 * kLanes) {
    outer_group<R, 2>(a, rows_a, b + j, rows_b, blocks, place.from(0, j));
  }
  for (; j < rows_b; j += kLanes) outer_group<R, 1>(a, rows_a, b + j, rows_b, blocks, place.from(0, j));
}

// As dot_rows, where the rows of b are a multiple of kLanes: sums lie side by side in vectors, so none is folded.
// Scratch: as large as b.
inline void outer_rows(Rows a, Rows b, size_t blocks, Place place, float* scratch) {
  const size_t block = b.rows * kBlock;
  for (size_t n = 0; n < blocks; ++n) transpose_block(b.data + n * block, b.rows, scratch + n * block);
  size_t i = 0;
  for (; i + kOuterRows <= a.rows; i += kOuterRows) {
    outer_group_rows<kOuterRows>(a.data + i * kBlock, a.rows, scratch, b.rows, blocks, place.from(i, 0));
  }
  for (; i + 4 <= a.rows; i += 4) {
    outer_group_rows<4>(a.data + i * kBlock, a.rows, scratch, b.rows, blocks, place.from(i, 0));
  }
  for (; i < a.rows; ++i) {
    outer_group_rows<1>(a.data + i * kBlock, a.rows, scratch, b.rows, blocks, place.from(i, 0));
  }
}

// place[i, j] = sum over examples of a[i] b[j]. Scratch: as large as b.
inline void multiply_rows(Rows a, Rows b, size_t blocks, Place place, float* scratch) {
  if (b.rows % kLanes == 0) {
    outer_rows(a, b, blocks, place, scratch);
  } else {
    dot_rows(a, b, blocks, place);
  }
}

// place[i, 0] = sum over examples of a[i].
inline void sum_rows(Rows a, size_t blocks, Place place) {
  for (size_t i = 0; i < a.rows; ++i) {
    Vector sum = {};
    const float* row = a.data + i * kBlock;
    for (size_t n = 0; n < blocks; ++n, row += a.rows * kBlock) {
      for (int c = 0; c < kVectors; ++c) sum += load(row + c * kLanes);
    }
    float found = 0.0f;
    for (int lane = 0; lane < kLanes; ++lane) found += sum[lane];
    place.put(i, 0, found);
  }
}
