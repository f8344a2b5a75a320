//===- ConvolutionCommand.cpp - Convolutions ------------------------------===//

#include "ConvolutionGeometry.h"
#include "ExecutableVerifier.h"
#include "LoopKernels.h"
#include "OneDnnConvolution.h"
#include "Parallel.h"
#include "PreparedCommand.h"

using namespace torch_ltc::runtime;

namespace {

ConvolutionKind kindOf(const ConvolutionCall &call) {
  switch (call.kind()) {
  case ConvolutionCall::BACKWARD_INPUT:
    return ConvolutionKind::Input;
  case ConvolutionCall::BACKWARD_WEIGHT:
    return ConvolutionKind::Weight;
  default:
    return ConvolutionKind::Forward;
  }
}

/// A convolution by the runtime's own loops: for dtypes and CPUs that oneDNN
/// doesn't support, and for empty tensors. All elements of the result are
/// written, so a gradient that is a sum over an empty tensor is zero.
class LoopConvolution : public PreparedCommand {
public:
  LoopConvolution(const ConvolutionCall &call, const ConvolutionGeometry &g,
                  int numThreads)
      : call(call), geometry(g), kernels(*loopKernels(call.dtype())),
        kind(kindOf(call)) {
    int64_t inputs = g.inputChannels / g.groups;
    int64_t outputs = g.outputChannels / g.groups;
    rows = kind == ConvolutionKind::Input ? inputs : outputs;
    columns = kind == ConvolutionKind::Forward ? g.batch * g.outputPlane()
              : kind == ConvolutionKind::Input ? g.batch * g.inputPlane()
                                               : inputs * g.kernelPlane();
    rowBlocks = (rows + kBlockRows - 1) / kBlockRows;
    columnBlocks = (columns + kBlockColumns - 1) / kBlockColumns;
    threads = threadsFor(numBlocks(), 1, numThreads);
  }

  llvm::Error run(const RunContext &context) override {
    ConvolutionArguments arguments = {&geometry,
                                      kind,
                                      context.resolve(call.input()),
                                      context.resolve(call.weight()),
                                      context.resolve(call.output()),
                                      nullptr};
    char *bias = call.has_bias() ? context.resolve(call.bias()) : nullptr;
    if (kind == ConvolutionKind::Forward)
      arguments.bias = bias;
    parallelFor(numBlocks(), threads, 1, [&](int64_t begin, int64_t end) {
      // If no team was created, omp_get_thread_num may return the thread's
      // number in another team, which isn't an index of the scratch memory.
      int thread = threads > 1 ? omp_get_thread_num() : 0;
      for (int64_t index = begin; index < end; ++index)
        runBlock(arguments, index,
                 context.scratch + thread * kBlockScratchBytes);
    });
    if (kind == ConvolutionKind::Weight && bias)
      parallelFor(geometry.outputChannels,
                  threadsFor(geometry.outputChannels, 1, threads), 1,
                  [&](int64_t begin, int64_t end) {
                    kernels.sumChannels(arguments.output, bias, geometry.batch,
                                        geometry.outputChannels,
                                        geometry.outputPlane(), begin, end);
                  });
    return llvm::Error::success();
  }

  Team team() const override { return threads > 1 ? Team::Long : Team::None; }

  size_t scratchBytes() const override { return threads * kBlockScratchBytes; }

private:
  int64_t numBlocks() const {
    return geometry.groups * rowBlocks * columnBlocks;
  }

  void runBlock(const ConvolutionArguments &arguments, int64_t index,
                char *scratch) const {
    Block block;
    block.columnBegin = index % columnBlocks * kBlockColumns;
    block.columnEnd = std::min(columns, block.columnBegin + kBlockColumns);
    block.rowBegin = index / columnBlocks % rowBlocks * kBlockRows;
    block.rowEnd = std::min(rows, block.rowBegin + kBlockRows);
    kernels.convolution(arguments, index / columnBlocks / rowBlocks, block,
                        scratch);
  }

  const ConvolutionCall &call;
  ConvolutionGeometry geometry;
  const LoopKernels &kernels;
  ConvolutionKind kind;
  /// Sizes, and numbers of blocks, of the result of the matrix product that
  /// implements the convolution of one group.
  int64_t rows, columns, rowBlocks, columnBlocks;
  int threads;
};

} // namespace

llvm::Expected<PreparedCommandPtr>
torch_ltc::runtime::prepareConvolution(const Command &command,
                                       const Preparation &preparation) {
  const ConvolutionCall &call = command.convolution();
  int numThreads = preparation.numThreads;
  auto geometry = convolutionGeometry(call);
  if (!geometry)
    return geometry.takeError();
  if (geometry->inputElements() && geometry->weightElements() &&
      geometry->outputElements())
    if (PreparedCommandPtr convolution =
            prepareOneDnnConvolution(call, *geometry, numThreads))
      return convolution;
  return std::make_unique<LoopConvolution>(call, *geometry, numThreads);
}
