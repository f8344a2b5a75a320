//===- MatmulCommand.cpp - Matrix products --------------------------------===//

#include "DataType.h"
#include "LoopKernels.h"
#include "OneDnn.h"
#include "Parallel.h"
#include "PreparedCommand.h"

#include <string_view>

using namespace torch_ltc::runtime;

namespace {

using Dims = dnnl::memory::dims;

/// The number of multiply-adds; the largest int64 if there are more.
int64_t workOf(const MatmulCall &call) {
  int64_t work;
  if (__builtin_mul_overflow(call.batch() * call.m(), call.n(), &work) ||
      __builtin_mul_overflow(work, call.k(), &work))
    return INT64_MAX;
  return work;
}

/// The sizes of a product. A batch whose products share one B is folded into
/// one taller product.
struct Product {
  explicit Product(const MatmulCall &call)
      : batch(call.batch()), m(call.m()), n(call.n()), k(call.k()),
        strideA(call.batch_stride_a()), strideB(call.batch_stride_b()),
        transposeA(call.transpose_a()), transposeB(call.transpose_b()) {
    if (batch > 1 && strideB == 0 && !transposeA && strideA == m * k) {
      m *= batch;
      batch = 1;
    }
  }

  int64_t batch, m, n, k, strideA, strideB;
  bool transposeA, transposeB;
};

//===----------------------------------------------------------------------===//
// No work
//===----------------------------------------------------------------------===//

/// A product whose result is empty.
class EmptyMatmul : public PreparedCommand {
public:
  llvm::Error run(const RunContext &) override {
    return llvm::Error::success();
  }
};

//===----------------------------------------------------------------------===//
// oneDNN
//===----------------------------------------------------------------------===//

class OneDnnMatmul : public PreparedCommand {
public:
  /// Returns null if oneDNN has no fast implementation of the call on this CPU.
  static PreparedCommandPtr create(const MatmulCall &call, int numThreads);

  llvm::Error run(const RunContext &context) override {
    ThreadCountScope scope(threads);
    primitive.set(DNNL_ARG_SRC, context.resolve(call.a()));
    primitive.set(DNNL_ARG_WEIGHTS, context.resolve(call.b()));
    primitive.set(DNNL_ARG_DST, context.resolve(call.c()));
    if (call.has_bias())
      primitive.set(DNNL_ARG_BIAS, context.resolve(call.bias()));
    return primitive.execute(context.scratch);
  }

  Team team() const override;

  size_t scratchBytes() const override { return primitive.scratchpadBytes(); }

private:
  OneDnnMatmul(const MatmulCall &call, int64_t work, int threads)
      : call(call), work(work), threads(threads) {}

  const MatmulCall &call;
  int64_t work; // multiply-adds
  int threads;
  /// Whether the result is bitwise identical for any number of threads.
  bool isFixedOrder = false;
  OneDnnCall primitive;
};

/// Whether the terms of each sum are added in the same order for any number of
/// threads. Without AVX-512, oneDNN 3.2 uses implementations other than brgemm,
/// which may divide the sum of one element among threads.
bool sumsInOneOrder(const dnnl::matmul::primitive_desc &description) {
  return std::string_view(description.impl_info_str()).starts_with("brg");
}

Team OneDnnMatmul::team() const {
  Team team = teamFor(threads, work, kMultiplyAddsForThread);
  return team == Team::Short && !isFixedOrder ? Team::Long : team;
}

dnnl::memory::desc matrix(const Product &product, int64_t rows, int64_t columns,
                          bool transposed, int64_t stride,
                          dnnl::memory::data_type type) {
  int64_t rowStride = transposed ? 1 : columns;
  int64_t columnStride = transposed ? rows : 1;
  if (product.batch == 1)
    return {{rows, columns}, type, Dims{rowStride, columnStride}};
  // oneDNN broadcasts a batch of size 1.
  int64_t batch = stride ? product.batch : 1;
  return {{batch, rows, columns},
          type,
          Dims{stride ? stride : rows * columns, rowStride, columnStride}};
}

PreparedCommandPtr OneDnnMatmul::create(const MatmulCall &call,
                                        int numThreads) {
  auto type = oneDnnType(call.dtype());
  if (!type)
    return nullptr;
  Product p(call);
  int64_t work = workOf(call);
  int threads = threadsFor(work, kMultiplyAddsForThread, numThreads);
  ThreadCountScope scope(threads);

  dnnl::primitive_attr attributes = oneDnnAttributes();
  if (call.accumulate()) {
    dnnl::post_ops operations;
    operations.append_sum(1.0f);
    attributes.set_post_ops(operations);
  }
  dnnl::memory::desc a = matrix(p, p.m, p.k, p.transposeA, p.strideA, *type);
  dnnl::memory::desc b = matrix(p, p.k, p.n, p.transposeB, p.strideB, *type);
  dnnl::memory::desc c = matrix(p, p.m, p.n, false, p.m * p.n, *type);
  dnnl::memory::desc bias;
  if (call.has_bias()) {
    Dims sizes(p.batch == 1 ? 2 : 3, 1), strides(sizes.size(), p.n);
    sizes.back() = p.n;
    strides.back() = 1;
    bias = {sizes, *type, strides};
  }
  dnnl::matmul::primitive_desc description(oneDnnEngine(), a, b, bias, c,
                                           attributes, /*allow_empty=*/true);
  if (!isWorthCalling(description))
    return nullptr;
  std::unique_ptr<OneDnnMatmul> command(new OneDnnMatmul(call, work, threads));
  command->isFixedOrder = sumsInOneOrder(description);
  command->primitive = OneDnnCall(description);
  command->primitive.declare(DNNL_ARG_SRC, a);
  command->primitive.declare(DNNL_ARG_WEIGHTS, b);
  command->primitive.declare(DNNL_ARG_DST, c);
  if (call.has_bias())
    command->primitive.declare(DNNL_ARG_BIAS, bias);
  return command;
}

//===----------------------------------------------------------------------===//
// Matrix times vector
//===----------------------------------------------------------------------===//

/// A product with m = 1 or n = 1. oneDNN 3.2 takes 1.6 to 2.4 times as long as
/// these loops, which are limited by memory bandwidth.
class MatrixVector : public PreparedCommand {
public:
  MatrixVector(const MatmulCall &call, int numThreads)
      : call(call), kernels(*loopKernels(call.dtype())),
        // C's only row is op(B)^T times A's row, or C's only column is op(A)
        // times B's column.
        oneRow(call.m() == 1), rows(oneRow ? call.n() : call.m()),
        threads(threadsFor(rows * call.k() * elementBytes(call.dtype()),
                           kGrainBytes, numThreads)) {}

  llvm::Error run(const RunContext &context) override {
    char *a = context.resolve(call.a()), *b = context.resolve(call.b());
    MatrixVectorArguments arguments;
    arguments.matrix = oneRow ? b : a;
    arguments.vector = oneRow ? a : b;
    arguments.bias = call.has_bias() ? context.resolve(call.bias()) : nullptr;
    arguments.result = context.resolve(call.c());
    arguments.rows = rows;
    arguments.depth = call.k();
    arguments.transposed = oneRow ? !call.transpose_b() : call.transpose_a();
    arguments.oneBias = !oneRow;
    arguments.accumulate = call.accumulate();
    parallelFor(rows, threads, 16, [&](int64_t begin, int64_t end) {
      kernels.matrixVector(arguments, begin, end);
    });
    return llvm::Error::success();
  }

  Team team() const override {
    return teamFor(threads, rows * call.k() * elementBytes(call.dtype()),
                   kGrainBytes);
  }

  /// Whether these loops are the fastest implementation. For a batch of small
  /// products oneDNN's own batch loop is faster.
  static bool isBest(const MatmulCall &call) {
    return (call.m() == 1 || call.n() == 1) && call.batch() == 1;
  }

private:
  static constexpr int64_t kGrainBytes = 128 << 10;

  const MatmulCall &call;
  const LoopKernels &kernels;
  bool oneRow;
  int64_t rows;
  int threads;
};

//===----------------------------------------------------------------------===//
// The runtime's own loops
//===----------------------------------------------------------------------===//

class LoopMatmul : public PreparedCommand {
public:
  LoopMatmul(const MatmulCall &call, int numThreads)
      : call(call), product(call), kernels(*loopKernels(call.dtype())),
        rowBlocks((product.m + kBlockRows - 1) / kBlockRows),
        columnBlocks((product.n + kBlockColumns - 1) / kBlockColumns),
        threads(threadsFor(
            numBlocks(), 1,
            threadsFor(workOf(call), kMultiplyAddsForThread, numThreads))) {}

  llvm::Error run(const RunContext &context) override {
    parallelFor(numBlocks(), threads, 1, [&](int64_t begin, int64_t end) {
      // If no team was created, omp_get_thread_num may return the thread's
      // number in another team, which isn't an index of the scratch memory.
      int thread = threads > 1 ? omp_get_thread_num() : 0;
      for (int64_t index = begin; index < end; ++index)
        runBlock(context, index, context.scratch + thread * kBlockScratchBytes);
    });
    return llvm::Error::success();
  }

  Team team() const override { return threads > 1 ? Team::Long : Team::None; }

  size_t scratchBytes() const override { return threads * kBlockScratchBytes; }

private:
  int64_t numBlocks() const { return product.batch * rowBlocks * columnBlocks; }

  void runBlock(const RunContext &context, int64_t index, char *scratch) const {
    const Product &p = product;
    Block block;
    block.columnBegin = index % columnBlocks * kBlockColumns;
    block.columnEnd = std::min(p.n, block.columnBegin + kBlockColumns);
    block.rowBegin = index / columnBlocks % rowBlocks * kBlockRows;
    block.rowEnd = std::min(p.m, block.rowBegin + kBlockRows);
    int64_t batch = index / columnBlocks / rowBlocks;
    int64_t element = elementBytes(call.dtype());
    GemmArguments arguments;
    arguments.a = context.resolve(call.a()) + batch * p.strideA * element;
    arguments.b = context.resolve(call.b()) + batch * p.strideB * element;
    arguments.c = context.resolve(call.c()) + batch * p.m * p.n * element;
    arguments.bias = call.has_bias() ? context.resolve(call.bias()) : nullptr;
    arguments.m = p.m, arguments.n = p.n, arguments.k = p.k;
    arguments.transposeA = p.transposeA, arguments.transposeB = p.transposeB;
    arguments.accumulate = call.accumulate();
    kernels.gemm(arguments, block, scratch);
  }

  const MatmulCall &call;
  Product product;
  const LoopKernels &kernels;
  int64_t rowBlocks, columnBlocks;
  int threads;
};

/// Whether oneDNN saves more time in the expected runs than it needs to
/// generate the code of its primitive, which has fixed sizes.
bool isPrimitiveWorthCreating(const MatmulCall &call,
                              const Preparation &preparation) {
  /// Generating takes about 250 us, and oneDNN saves about half of the loops'
  /// time, which is 30 us for a million multiply-adds.
  constexpr double kMultiplyAddsOfPrimitive = 16e6;
  if (call.dtype() != FLOAT32 ||
      double(workOf(call)) * double(preparation.expectedRuns) >=
          kMultiplyAddsOfPrimitive)
    return true;
  if (preparation.dependsOnRuns)
    *preparation.dependsOnRuns = true;
  return false;
}

} // namespace

llvm::Expected<PreparedCommandPtr>
torch_ltc::runtime::prepareMatmul(const Command &command,
                                  const Preparation &preparation) {
  const MatmulCall &call = command.matmul();
  int numThreads = preparation.numThreads;
  if (!call.batch() || !call.m() || !call.n())
    return std::make_unique<EmptyMatmul>();
  if (MatrixVector::isBest(call))
    return std::make_unique<MatrixVector>(call, numThreads);
  // A product with k = 0 only fills C, which the loops support.
  if (call.k() && isPrimitiveWorthCreating(call, preparation))
    if (PreparedCommandPtr product = OneDnnMatmul::create(call, numThreads))
      return product;
  return std::make_unique<LoopMatmul>(call, numThreads);
}
