//===- AttentionCommand.cpp - Attention without a matrix of scores --------===//

#include "LoopKernels.h"
#include "PreparedCommand.h"

using namespace torch_ltc::runtime;

namespace {

/// Number of queries in a work item: several panels, so that the keys and
/// values of a head are read from the cache after the first panel.
constexpr int64_t kQueries = 8 * kMaxQueriesOfPanel;

/// Computes attention or its gradients. No sum is divided among work items, so
/// the result is bitwise identical for any number of threads.
class Attention : public PreparedCommand {
public:
  Attention(const AttentionCall &call, int numThreads)
      : call(call), kernels(attentionKernels()),
        heads(call.batch() * call.heads()),
        partsOfHead(
            call.backward() ? 1 : (call.length() + kQueries - 1) / kQueries),
        threads(int(std::min(
            heads * partsOfHead,
            int64_t(threadsFor(work(), kMultiplyAddsForThread, numThreads))))) {
    AttentionArguments sizes = argumentsOf({}, -1);
    int64_t floats = call.backward() ? attentionBackwardScratchFloats(sizes)
                                     : attentionScratchFloats(sizes);
    scratchOfThread = (floats * sizeof(float) + 63) / 64 * 64;
  }

  llvm::Error run(const RunContext &context) override {
    parallelFor(heads * partsOfHead, threads, 1,
                [&](int64_t begin, int64_t end) {
                  // If no team was created, omp_get_thread_num may return the
                  // thread's number in another team, which isn't an index of
                  // the scratch memory.
                  int thread = threads > 1 ? omp_get_thread_num() : 0;
                  auto *scratch = reinterpret_cast<float *>(
                      context.scratch + thread * scratchOfThread);
                  for (int64_t part = begin; part < end; ++part)
                    runPart(context, part, scratch);
                });
    return llvm::Error::success();
  }

  Team team() const override {
    return teamFor(threads, work(), kMultiplyAddsForThread);
  }

  size_t scratchBytes() const override { return threads * scratchOfThread; }

private:
  int64_t work() const {
    double scores = double(call.batch()) * double(call.heads()) *
                    double(call.length()) * double(call.keys());
    double each = double(call.width() + call.value_width());
    return int64_t(std::min(scores * each * (call.backward() ? 2.5 : 1), 1e18));
  }

  /// The operands of one head, or only the sizes if `head` is -1.
  AttentionArguments argumentsOf(const RunContext &context,
                                 int64_t head) const {
    AttentionArguments g = {};
    g.length = call.length(), g.keys = call.keys();
    g.width = call.width(), g.valueWidth = call.value_width();
    g.maskRowStride = call.mask_row_stride();
    g.isCausal = call.causal();
    if (head < 0)
      return g;
    auto part = [&](const BufferRef &ref, int64_t rows, int64_t columns) {
      return reinterpret_cast<float *>(context.resolve(ref)) +
             head * rows * columns;
    };
    g.query = part(call.query(), g.length, g.width);
    g.key = part(call.key(), g.keys, g.width);
    g.value = part(call.value(), g.keys, g.valueWidth);
    g.output = part(call.output(), g.length, g.valueWidth);
    g.logSum = part(call.log_sum(), g.length, 1);
    if (call.has_mask())
      g.mask = part(call.mask(), 0, 0) +
               head / call.heads() * call.mask_batch_stride() +
               head % call.heads() * call.mask_head_stride();
    if (call.backward()) {
      g.gradOutput = part(call.grad_output(), g.length, g.valueWidth);
      g.gradQuery = part(call.grad_query(), g.length, g.width);
      g.gradKey = part(call.grad_key(), g.keys, g.width);
      g.gradValue = part(call.grad_value(), g.keys, g.valueWidth);
    }
    return g;
  }

  void runPart(const RunContext &context, int64_t part, float *scratch) const {
    AttentionArguments g = argumentsOf(context, part / partsOfHead);
    if (call.backward())
      return kernels.backward(g, scratch);
    int64_t begin = part % partsOfHead * kQueries;
    kernels.forward(g, begin, std::min(g.length, begin + kQueries), scratch);
  }

  const AttentionCall &call;
  const AttentionKernels &kernels;
  int64_t heads, partsOfHead;
  int threads;
  size_t scratchOfThread;
};

} // namespace

llvm::Expected<PreparedCommandPtr>
torch_ltc::runtime::prepareAttention(const Command &command,
                                     const Preparation &preparation) {
  return std::make_unique<Attention>(command.attention(),
                                     preparation.numThreads);
}
