//===- OneDnnConvolution.cpp - Convolutions by oneDNN ---------------------===//

#include "OneDnnConvolution.h"

#include "Arena.h"
#include "OneDnn.h"
#include "PackedWeightCache.h"
#include "Parallel.h"

using namespace torch_ltc::runtime;

namespace {

using Dims = dnnl::memory::dims;
using Desc = dnnl::memory::desc;

/// Describes a tensor in row-major order.
Desc plain(const Dims &sizes, dnnl::memory::data_type type) {
  Dims strides(sizes.size());
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= sizes[i];
  }
  return {sizes, type, strides};
}

/// Describes a tensor in whichever order the implementation prefers.
Desc any(const Dims &sizes, dnnl::memory::data_type type) {
  return {sizes, type, dnnl::memory::format_tag::any};
}

/// Sizes in oneDNN's terms, with as many spatial dimensions as the call has.
struct Problem {
  Problem(const ConvolutionGeometry &g, DType dtype)
      : type(*oneDnnType(dtype)) {
    int64_t groupInputs = g.inputChannels / g.groups;
    input = {g.batch, g.inputChannels};
    output = {g.batch, g.outputChannels};
    // PyTorch's weight [o, c / groups, ...] has the same memory layout as
    // oneDNN's [groups, o / groups, c / groups, ...].
    if (g.groups == 1)
      weight = {g.outputChannels, groupInputs};
    else
      weight = {g.groups, g.outputChannels / g.groups, groupInputs};
    bias = {g.outputChannels};
    for (int d = 3 - g.spatialRank; d < 3; ++d) {
      input.push_back(g.input[d]);
      output.push_back(g.output[d]);
      weight.push_back(g.kernel[d]);
      stride.push_back(g.stride[d]);
      dilation.push_back(g.dilation[d] - 1);
      left.push_back(g.padding[d]);
      // oneDNN expects only the padding that is read: with a stride, some of
      // the right padding may be unused.
      int64_t window = g.dilation[d] * (g.kernel[d] - 1) + 1;
      right.push_back((g.output[d] - 1) * g.stride[d] + window - g.input[d] -
                      g.padding[d]);
    }
  }

  dnnl::memory::data_type type;
  Dims input, weight, output, bias, stride, dilation, left, right;
};

class OneDnnConvolution : public PreparedCommand {
public:
  OneDnnConvolution(const ConvolutionCall &call, int threads)
      : call(call), threads(threads) {}

  bool create(const Problem &problem);

  llvm::Error run(const RunContext &context) override;

  /// Never Team::Short: preparing the primitives for a different number of
  /// threads takes milliseconds.
  Team team() const override { return threads > 1 ? Team::Long : Team::None; }

  size_t scratchBytes() const override {
    return alignedSize(sharedScratch) + tensorScratch;
  }

private:
  /// An operand and, if the primitive requires a different order, its reordered
  /// copy.
  struct Tensor {
    int argument;
    const BufferRef *ref;
    bool written;
    bool reordered;
    size_t scratchOffset; // of the reordered copy
    size_t bytes;         // of the reordered copy
    OneDnnCall reorder;
    PackedWeightCache packed;
  };

  bool createForward(const Problem &problem);
  bool createBackwardInput(const Problem &problem);
  bool createBackwardWeight(const Problem &problem);
  /// The forward primitive that oneDNN requires as a hint for backward ones.
  dnnl::convolution_forward::primitive_desc
  forwardHint(const Problem &problem) const;
  llvm::Error bringIn(Tensor &tensor, char *copy, const RunContext &context);
  void addTensor(int argument, const BufferRef &ref, bool written,
                 const Desc &user, const Desc &wanted);

  const ConvolutionCall &call;
  int threads;
  OneDnnCall primitive;
  std::vector<Tensor> tensors;
  /// Bytes of scratch memory that one primitive at a time uses.
  size_t sharedScratch = 0;
  /// Bytes of reordered tensors that are live at the same time.
  size_t tensorScratch = 0;
};

constexpr auto kAlgorithm = dnnl::algorithm::convolution_direct;

void OneDnnConvolution::addTensor(int argument, const BufferRef &ref,
                                  bool written, const Desc &user,
                                  const Desc &wanted) {
  primitive.declare(argument, wanted);
  tensors.push_back({argument, &ref, written, user != wanted, 0, 0, {}, {}});
  Tensor &tensor = tensors.back();
  if (!tensor.reordered)
    return;
  const Desc &from = written ? wanted : user;
  const Desc &to = written ? user : wanted;
  dnnl::reorder::primitive_desc description(
      oneDnnEngine(), from, oneDnnEngine(), to, oneDnnAttributes());
  tensor.reorder = OneDnnCall(description);
  tensor.reorder.declare(DNNL_ARG_FROM, from);
  tensor.reorder.declare(DNNL_ARG_TO, to);
  tensor.bytes = wanted.get_size();
  tensor.scratchOffset = tensorScratch;
  tensorScratch += alignedSize(tensor.bytes);
  sharedScratch = std::max(sharedScratch, tensor.reorder.scratchpadBytes());
}

bool OneDnnConvolution::createForward(const Problem &p) {
  Desc bias = call.has_bias() ? plain(p.bias, p.type) : Desc();
  dnnl::convolution_forward::primitive_desc description(
      oneDnnEngine(), dnnl::prop_kind::forward_training, kAlgorithm,
      any(p.input, p.type), any(p.weight, p.type), bias, any(p.output, p.type),
      p.stride, p.dilation, p.left, p.right, oneDnnAttributes(),
      /*allow_empty=*/true);
  if (!isWorthCalling(description))
    return false;
  primitive = OneDnnCall(description);
  addTensor(DNNL_ARG_SRC, call.input(), false, plain(p.input, p.type),
            description.src_desc());
  addTensor(DNNL_ARG_WEIGHTS, call.weight(), false, plain(p.weight, p.type),
            description.weights_desc());
  addTensor(DNNL_ARG_DST, call.output(), true, plain(p.output, p.type),
            description.dst_desc());
  if (call.has_bias())
    addTensor(DNNL_ARG_BIAS, call.bias(), false, bias, bias);
  return true;
}

dnnl::convolution_forward::primitive_desc
OneDnnConvolution::forwardHint(const Problem &p) const {
  return {oneDnnEngine(),
          dnnl::prop_kind::forward_training,
          kAlgorithm,
          any(p.input, p.type),
          any(p.weight, p.type),
          any(p.output, p.type),
          p.stride,
          p.dilation,
          p.left,
          p.right,
          oneDnnAttributes(),
          /*allow_empty=*/true};
}

bool OneDnnConvolution::createBackwardInput(const Problem &p) {
  auto hint = forwardHint(p);
  if (!hint)
    return false;
  dnnl::convolution_backward_data::primitive_desc description(
      oneDnnEngine(), kAlgorithm, any(p.input, p.type), any(p.weight, p.type),
      any(p.output, p.type), p.stride, p.dilation, p.left, p.right, hint,
      oneDnnAttributes(), /*allow_empty=*/true);
  if (!isWorthCalling(description))
    return false;
  primitive = OneDnnCall(description);
  addTensor(DNNL_ARG_DIFF_DST, call.output(), false, plain(p.output, p.type),
            description.diff_dst_desc());
  addTensor(DNNL_ARG_WEIGHTS, call.weight(), false, plain(p.weight, p.type),
            description.weights_desc());
  addTensor(DNNL_ARG_DIFF_SRC, call.input(), true, plain(p.input, p.type),
            description.diff_src_desc());
  return true;
}

bool OneDnnConvolution::createBackwardWeight(const Problem &p) {
  auto hint = forwardHint(p);
  if (!hint)
    return false;
  Desc bias = call.has_bias() ? plain(p.bias, p.type) : Desc();
  dnnl::convolution_backward_weights::primitive_desc description(
      oneDnnEngine(), kAlgorithm, any(p.input, p.type), any(p.weight, p.type),
      bias, any(p.output, p.type), p.stride, p.dilation, p.left, p.right, hint,
      oneDnnAttributes(), /*allow_empty=*/true);
  if (!isWorthCalling(description))
    return false;
  primitive = OneDnnCall(description);
  addTensor(DNNL_ARG_SRC, call.input(), false, plain(p.input, p.type),
            description.src_desc());
  addTensor(DNNL_ARG_DIFF_DST, call.output(), false, plain(p.output, p.type),
            description.diff_dst_desc());
  addTensor(DNNL_ARG_DIFF_WEIGHTS, call.weight(), true, plain(p.weight, p.type),
            description.diff_weights_desc());
  if (call.has_bias())
    addTensor(DNNL_ARG_DIFF_BIAS, call.bias(), true, bias, bias);
  return true;
}

bool OneDnnConvolution::create(const Problem &problem) {
  ThreadCountScope scope(threads);
  bool created = false;
  switch (call.kind()) {
  case ConvolutionCall::BACKWARD_INPUT:
    created = createBackwardInput(problem);
    break;
  case ConvolutionCall::BACKWARD_WEIGHT:
    created = createBackwardWeight(problem);
    break;
  default:
    created = createForward(problem);
    break;
  }
  sharedScratch = std::max(sharedScratch, primitive.scratchpadBytes());
  return created;
}

/// Passes an operand to the primitive in the order that the primitive requires;
/// `copy` is scratch memory for the reordered operand.
llvm::Error OneDnnConvolution::bringIn(Tensor &tensor, char *copy,
                                       const RunContext &context) {
  char *user = context.resolve(*tensor.ref);
  if (!tensor.reordered) {
    primitive.set(tensor.argument, user);
    return llvm::Error::success();
  }
  uint64_t contents = 0;
  if (tensor.argument == DNNL_ARG_WEIGHTS) {
    contents = context.contentsOf(*tensor.ref);
    if (char *packed = tensor.packed.find(contents)) {
      primitive.set(tensor.argument, packed);
      return llvm::Error::success();
    }
    if (char *place = tensor.packed.place(contents, tensor.bytes))
      copy = place;
    else
      contents = 0;
  }
  primitive.set(tensor.argument, copy);
  tensor.reorder.set(DNNL_ARG_FROM, user);
  tensor.reorder.set(DNNL_ARG_TO, copy);
  if (llvm::Error error = tensor.reorder.execute(context.scratch))
    return error;
  if (contents)
    tensor.packed.setContents(contents);
  return llvm::Error::success();
}

llvm::Error OneDnnConvolution::run(const RunContext &context) {
  ThreadCountScope scope(threads);
  char *copies = context.scratch + alignedSize(sharedScratch);
  for (Tensor &tensor : tensors) {
    char *copy = copies + tensor.scratchOffset;
    if (tensor.written)
      primitive.set(tensor.argument,
                    tensor.reordered ? copy : context.resolve(*tensor.ref));
    else if (llvm::Error error = bringIn(tensor, copy, context))
      return error;
  }
  if (llvm::Error error = primitive.execute(context.scratch))
    return error;
  for (Tensor &tensor : tensors) {
    if (!tensor.reordered || !tensor.written)
      continue;
    tensor.reorder.set(DNNL_ARG_FROM, copies + tensor.scratchOffset);
    tensor.reorder.set(DNNL_ARG_TO, context.resolve(*tensor.ref));
    if (llvm::Error error = tensor.reorder.execute(context.scratch))
      return error;
  }
  return llvm::Error::success();
}

} // namespace

PreparedCommandPtr torch_ltc::runtime::prepareOneDnnConvolution(
    const ConvolutionCall &call, const ConvolutionGeometry &geometry,
    int numThreads) {
  if (!oneDnnType(call.dtype()))
    return nullptr;
  int64_t work;
  if (__builtin_mul_overflow(
          geometry.outputElements(),
          geometry.weightElements() / geometry.outputChannels, &work))
    work = INT64_MAX;
  auto command = std::make_unique<OneDnnConvolution>(
      call, threadsFor(work, kMultiplyAddsForThread, numThreads));
  if (!command->create(Problem(geometry, call.dtype())))
    return nullptr;
  return command;
}
