//===- LoopKernels.h - Loops where oneDNN has no implementation -----------===//
//
// Matrix products and convolutions for dtypes and CPUs that oneDNN doesn't
// support; products with a vector in all numeric dtypes; attention in float32.
// LoopKernels.inc is compiled once for each x86-64 level; `loopKernels()`
// returns the functions for the best level that this CPU supports. Each
// function computes a part of the result on one thread.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_RUNTIME_LOOPKERNELS_H
#define TORCH_LTC_RUNTIME_LOOPKERNELS_H

#include <cstddef>
#include <cstdint>

namespace torch_ltc::runtime {

struct ConvolutionGeometry;

inline constexpr int64_t kBlockRows = 96;
inline constexpr int64_t kBlockColumns = 256;
inline constexpr int64_t kBlockDepth = 256;

/// Bytes of scratch memory, 64-byte aligned, for one block: packed operands and
/// sums, in elements of at most 8 bytes, and 32 bytes for each column and each
/// depth index of a convolution's block.
inline constexpr size_t kBlockScratchBytes =
    8 * size_t(kBlockRows * kBlockDepth + kBlockDepth * kBlockColumns +
               kBlockRows * kBlockColumns) +
    32 * size_t(kBlockColumns + kBlockDepth);

/// Part of a result, at most kBlockRows by kBlockColumns.
struct Block {
  int64_t rowBegin, rowEnd;
  int64_t columnBegin, columnEnd;
};

/// C = op(A) * op(B) (+ bias) (+ C) for one matrix, with sizes as in
/// MatmulCall.
struct GemmArguments {
  const void *a, *b, *bias; // bias may be null
  void *c;
  int64_t m, n, k;
  bool transposeA, transposeB, accumulate;
};

/// result[row] = sum over p of matrix[row, p] * vector[p] (+ bias) (+ result).
struct MatrixVectorArguments {
  const void *matrix, *vector, *bias; // bias may be null
  void *result;
  int64_t rows, depth;
  bool transposed; // the matrix is stored [depth, rows]
  bool oneBias;    // `bias` has one element for all rows, not one for each row
  bool accumulate;
};

enum class ConvolutionKind { Forward, Input, Weight };

/// A convolution as a matrix product for each group. The kind determines the
/// rows and columns of the result:
///
///   Forward  output channels of a group, batch * output plane
///   Input    input channels of a group,  batch * input plane
///   Weight   output channels of a group, input channels of the group * window
struct ConvolutionArguments {
  const ConvolutionGeometry *geometry;
  ConvolutionKind kind;
  void *input, *weight, *output; // `kind` determines which one is written
  const void *bias;              // for Forward; may be null
};

/// Functions for one dtype. Blocks are independent of each other.
struct LoopKernels {
  void (*gemm)(const GemmArguments &arguments, const Block &block,
               char *scratch);
  /// Computes rows [begin, end).
  void (*matrixVector)(const MatrixVectorArguments &arguments, int64_t begin,
                       int64_t end);
  void (*convolution)(const ConvolutionArguments &arguments, int64_t group,
                      const Block &block, char *scratch);
  /// Sums the output's gradient [batch, channels, plane] over batch and plane
  /// for channels [begin, end).
  void (*sumChannels)(const void *output, void *bias, int64_t batch,
                      int64_t channels, int64_t plane, int64_t begin,
                      int64_t end);
};

/// softmax(query key^T + mask) value for one head, and its gradients. Pointers
/// that a function doesn't use may be null; `mask` may always be null.
struct AttentionArguments {
  const float *query, *key, *value; // [length, width], [keys, width],
                                    // [keys, valueWidth]
  const float *mask;                // [length, keys], rows maskRowStride apart
  float *output, *logSum;           // [length, valueWidth], [length]
  const float *gradOutput;
  float *gradQuery, *gradKey, *gradValue;
  int64_t length, keys, width, valueWidth;
  int64_t maskRowStride;
  bool isCausal; // a query attends to the keys up to its own position
};

/// Maximum number of queries that are computed together. Ranges of queries
/// begin at multiples of this number.
inline constexpr int64_t kMaxQueriesOfPanel = 32;
inline constexpr int64_t kMaxKeysOfBlock = 64;

/// Scratch memory, in floats, of one call of AttentionKernels::forward and of
/// one call of AttentionKernels::backward.
int64_t attentionScratchFloats(const AttentionArguments &arguments);
int64_t attentionBackwardScratchFloats(const AttentionArguments &arguments);

struct AttentionKernels {
  /// Computes output and, unless it is null, logSum for queries [begin, end).
  void (*forward)(const AttentionArguments &arguments, int64_t begin,
                  int64_t end, float *scratch);
  /// Computes the three gradients from output, logSum and gradOutput.
  void (*backward)(const AttentionArguments &arguments, float *scratch);
};

/// The attention loops for this CPU.
const AttentionKernels &attentionKernels();

/// The functions for a dtype of executable.proto (as int), null for bool.
const LoopKernels *loopKernels(int dtype);

// One table for each instruction set.
namespace baseline {
const LoopKernels *loopKernels(int dtype);
extern const AttentionKernels kAttention;
} // namespace baseline
namespace avx2 {
const LoopKernels *loopKernels(int dtype);
extern const AttentionKernels kAttention;
} // namespace avx2
namespace avx512 {
const LoopKernels *loopKernels(int dtype);
extern const AttentionKernels kAttention;
} // namespace avx512

} // namespace torch_ltc::runtime

#endif // TORCH_LTC_RUNTIME_LOOPKERNELS_H
