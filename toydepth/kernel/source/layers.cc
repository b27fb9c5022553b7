// A stack of residual blocks, forward and backward, as calls that XLA makes on CPU.
//
// Arrays, float32, any number of leading axes (arms) before the last ones named here:
//   x, y, dx, dy (m, batch); W1 (layers, stages, m, 4m); b1 (layers, stages, 4m); W2 (layers, stages, 4m, m);
//   kept (depth, m * (batch rounded up to 64)): the input of every layer, in blocks.
// One stage is a step of Euler, x + mlp(rms(x)); two are a midpoint step. One layer of weights serves every depth.
// Inside, the examples of a call stand in blocks (vectors.h), the last one filled up with zeros.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "branch.h"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;
using Array = ffi::Buffer<ffi::F32>;
using Result = ffi::ResultBuffer<ffi::F32>;

namespace {

// Memory of a thread, kept from call to call, handed out in aligned pieces.
class Scratch {
 public:
  explicit Scratch(size_t floats) {
    static thread_local std::vector<Vector> memory;
    if (memory.size() * kLanes < floats) memory.resize(floats / kLanes + 1);
    next_ = reinterpret_cast<float*>(memory.data());
  }
  float* take(size_t floats) {  // a multiple of kLanes
    float* piece = next_;
    next_ += floats;
    return piece;
  }

 private:
  float* next_;
};

struct Sizes {
  size_t arms, m, batch, blocks, layers, stages, depth, kept;
  size_t state() const { return blocks * m * kBlock; }
  size_t matrix() const { return 4 * m * m; }
};

size_t product(const Array& array, size_t last) {
  size_t count = 1;
  const auto dimensions = array.dimensions();
  for (size_t i = 0; i + last < dimensions.size(); ++i) count *= dimensions[i];
  return count;
}

Sizes sizes_of(const Array& x, const Array& w1, int64_t depth) {
  const auto of_x = x.dimensions(), of_w1 = w1.dimensions();
  Sizes s;
  s.arms = product(x, 2);
  s.m = of_x[of_x.size() - 2];
  s.batch = of_x[of_x.size() - 1];
  s.blocks = (s.batch + kBlock - 1) / kBlock;
  s.layers = of_w1[of_w1.size() - 4];
  s.stages = of_w1[of_w1.size() - 3];
  s.depth = depth;
  s.kept = s.m * ((s.batch + 63) / 64 * 64);
  return s;
}

// What the weights' shapes have to be, given x (m, batch) and the depth; a call with others would read beyond them.
bool fits(const Array& x, const Array& w1, const Array& b1, const Array& w2, int64_t depth) {
  if (x.dimensions().size() < 2 || w1.dimensions().size() < 4) return false;
  const Sizes s = sizes_of(x, w1, depth);
  const size_t stages = s.arms * s.layers * s.stages;
  return depth > 0 && (s.layers == s.depth || s.layers == 1) && (s.stages == 1 || s.stages == 2) &&
         product(w1, 0) == stages * s.matrix() && product(w2, 0) == stages * s.matrix() &&
         product(b1, 0) == stages * 4 * s.m;
}

ffi::Error misfit() { return ffi::Error::InvalidArgument("the shapes of x, W1, b1, W2 and the depth do not fit"); }

Mlp mlp_of(const Sizes& s, const Array& w1, const Array& b1, const Array& w2, size_t arm, size_t layer, size_t stage) {
  const size_t index = (arm * s.layers + (s.layers == 1 ? 0 : layer)) * s.stages + stage;
  return {w1.typed_data() + index * s.matrix(), b1.typed_data() + index * 4 * s.m,
          w2.typed_data() + index * s.matrix()};
}

void to_blocks(const Sizes& s, const float* from, float* to) {
  for (size_t n = 0; n < s.blocks; ++n) {
    const size_t first = n * kBlock, count = std::min<size_t>(kBlock, s.batch - first);
    for (size_t k = 0; k < s.m; ++k, to += kBlock) {
      std::memcpy(to, from + k * s.batch + first, count * sizeof(float));
      if (count < kBlock) std::memset(to + count, 0, (kBlock - count) * sizeof(float));
    }
  }
}

void from_blocks(const Sizes& s, const float* from, float* to) {
  for (size_t n = 0; n < s.blocks; ++n) {
    const size_t first = n * kBlock, count = std::min<size_t>(kBlock, s.batch - first);
    for (size_t k = 0; k < s.m; ++k, from += kBlock) {
      std::memcpy(to + k * s.batch + first, from, count * sizeof(float));
    }
  }
}

// One layer of one arm, all blocks: x to y, which may be the same. Scratch: 6 m + 1 rows of a block.
void forward_layer(const Sizes& s, const Mlp* mlps, const float* x, float* y, float* scratch) {
  float *normed = scratch, *squared = normed + s.m * kBlock, *scale = squared + 4 * s.m * kBlock;
  float* middle = scale + kBlock;
  for (size_t n = 0; n < s.blocks; ++n, x += s.m * kBlock, y += s.m * kBlock) {
    if (s.stages == 1) {
      step_forward(x, x, 1.0f, y, s.m, mlps[0], normed, squared, scale);
    } else {
      step_forward(x, x, 0.5f, middle, s.m, mlps[0], normed, squared, scale);
      step_forward(middle, x, 1.0f, y, s.m, mlps[1], normed, squared, scale);
    }
  }
}

// What pulls gradients back through some blocks of a stage, and what it leaves there for those of the weights.
struct Tile {
  size_t blocks;
  float *normed, *squared, *dhidden, *turned, *dnormed, *scale;

  // As many blocks as fill a third of the second-level cache; the rest is for what else is read and written.
  static size_t largest(const Sizes& s) {
    const size_t fit = level_2_cache() / 3 / (kRowsOfState * s.m * kBlock * sizeof(float));
    return std::max<size_t>(1, std::min(fit, s.blocks));
  }
  Tile(const Sizes& s, Scratch& memory) : blocks(largest(s)) {
    const size_t state = blocks * s.m * kBlock;
    normed = memory.take(state), squared = memory.take(4 * state), dhidden = memory.take(4 * state);
    turned = memory.take(state), dnormed = memory.take(s.m * kBlock), scale = memory.take(kBlock);
  }
  static size_t floats(const Sizes& s) { return kRowsOfState * largest(s) * s.m * kBlock + (s.m + 1) * kBlock; }

 private:
  static constexpr size_t kRowsOfState = 10;
  static size_t level_2_cache() {
#if defined(_SC_LEVEL2_CACHE_SIZE)
    const long found = sysconf(_SC_LEVEL2_CACHE_SIZE);
    if (found > 0) return found;
#endif
    return 1 << 20;
  }
};

// Where the gradients of a stage's weights go.
struct MlpGradient {
  float *w1, *b1, *w2;
};

// dx = base + J^T dy for all blocks of one stage, and the gradients of its weights.
void backward_stage(const Sizes& s, Mlp mlp, const float* x, const float* dy, const float* base, float* dx,
                    MlpGradient gradient, const Tile& tile) {
  const size_t state = s.m * kBlock;
  for (size_t first = 0; first < s.blocks; first += tile.blocks) {
    const size_t blocks = std::min(tile.blocks, s.blocks - first);
    for (size_t n = 0; n < blocks; ++n) {
      const size_t at = (first + n) * state;
      pull_back(x + at, dy + at, base + at, dx + at, s.m, mlp, tile.normed + n * state, tile.squared + n * 4 * state,
                tile.dhidden + n * 4 * state, tile.dnormed, tile.scale);
    }
    const Rows dhidden{tile.dhidden, 4 * s.m}, squared{tile.squared, 4 * s.m};
    const Rows normed{tile.normed, s.m}, above{dy + first * state, s.m};
    multiply_rows(dhidden, normed, blocks, {gradient.w1, 1, 4 * s.m, first > 0}, tile.turned);
    multiply_rows(squared, above, blocks, {gradient.w2, s.m, 1, first > 0}, tile.turned);
    sum_rows(dhidden, blocks, {gradient.b1, 1, 1, first > 0});
  }
}

ffi::Error run_forward(const Array& x, const Array& w1, const Array& b1, const Array& w2, Result& y, float* kept,
                       int64_t depth) {
  if (!fits(x, w1, b1, w2, depth)) return misfit();
  const Sizes s = sizes_of(x, w1, depth);
  Scratch memory(s.state() + (6 * s.m + 1) * kBlock);
  float *own = memory.take(s.state()), *scratch = memory.take(0);
  for (size_t arm = 0; arm < s.arms; ++arm) {
    // Where the inputs of layers are kept, a layer reads its own and writes that of the next.
    float* state = kept ? kept + arm * s.depth * s.kept : own;
    to_blocks(s, x.typed_data() + arm * s.m * s.batch, state);
    for (size_t layer = 0; layer < s.depth; ++layer) {
      const Mlp mlps[2] = {mlp_of(s, w1, b1, w2, arm, layer, 0), mlp_of(s, w1, b1, w2, arm, layer, s.stages - 1)};
      float* next = kept && layer + 1 < s.depth ? state + s.kept : own;
      forward_layer(s, mlps, state, next, scratch);
      state = next;
    }
    from_blocks(s, state, y->typed_data() + arm * s.m * s.batch);
  }
  return ffi::Error::Success();
}

ffi::Error apply(Array x, Array w1, Array b1, Array w2, Result y, int64_t depth) {
  return run_forward(x, w1, b1, w2, y, nullptr, depth);
}

ffi::Error forward(Array x, Array w1, Array b1, Array w2, Result y, Result kept, int64_t depth) {
  return run_forward(x, w1, b1, w2, y, kept->typed_data(), depth);
}

ffi::Error backward(Array kept, Array w1, Array b1, Array w2, Array dy, Result dx, Result dw1, Result db1, Result dw2,
                    int64_t depth) {
  if (!fits(dy, w1, b1, w2, depth)) return misfit();
  const Sizes s = sizes_of(dy, w1, depth);
  const size_t state = s.state();
  Scratch memory(5 * state + Tile::floats(s));
  float *above = memory.take(state), *below = memory.take(state), *middle = memory.take(state);
  float *dmiddle = memory.take(state), *zeros = memory.take(state);
  const Tile tile(s, memory);
  std::fill(zeros, zeros + state, 0.0f);
  for (size_t arm = 0; arm < s.arms; ++arm) {
    to_blocks(s, dy.typed_data() + arm * s.m * s.batch, above);
    for (size_t layer = s.depth; layer-- > 0;) {
      const float* x = kept.typed_data() + (arm * s.depth + layer) * s.kept;
      const auto gradient = [&](size_t stage) {
        const size_t index = (arm * s.depth + layer) * s.stages + stage;
        return MlpGradient{dw1->typed_data() + index * s.matrix(), db1->typed_data() + index * 4 * s.m,
                           dw2->typed_data() + index * s.matrix()};
      };
      const Mlp first = mlp_of(s, w1, b1, w2, arm, layer, 0);
      if (s.stages == 1) {
        backward_stage(s, first, x, above, above, below, gradient(0), tile);
      } else {
        // y = x + mlp_2(rms(mid)), mid = x + mlp_1(rms(x)) / 2.
        for (size_t at = 0; at < state; at += s.m * kBlock) {
          step_forward(x + at, x + at, 0.5f, middle + at, s.m, first, tile.normed, tile.squared, tile.scale);
        }
        const Mlp second = mlp_of(s, w1, b1, w2, arm, layer, 1);
        backward_stage(s, second, middle, above, zeros, dmiddle, gradient(1), tile);
        for (size_t i = 0; i < state; ++i) {
          above[i] += dmiddle[i];
          dmiddle[i] *= 0.5f;
        }
        backward_stage(s, first, x, dmiddle, above, below, gradient(0), tile);
      }
      std::swap(above, below);
    }
    from_blocks(s, above, dx->typed_data() + arm * s.m * s.batch);
  }
  return ffi::Error::Success();
}

}  // namespace

XLA_FFI_DEFINE_HANDLER_SYMBOL(
    toydepth_apply, apply,
    ffi::Ffi::Bind().Arg<Array>().Arg<Array>().Arg<Array>().Arg<Array>().Ret<Array>().Attr<int64_t>("depth"));

// clang-format off
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    toydepth_forward, forward,
    ffi::Ffi::Bind().Arg<Array>().Arg<Array>().Arg<Array>().Arg<Array>()
        .Ret<Array>().Ret<Array>().Attr<int64_t>("depth"));

XLA_FFI_DEFINE_HANDLER_SYMBOL(
    toydepth_backward, backward,
    ffi::Ffi::Bind().Arg<Array>().Arg<Array>().Arg<Array>().Arg<Array>().Arg<Array>()
        .Ret<Array>().Ret<Array>().Ret<Array>().Ret<Array>().Attr<int64_t>("depth"));
