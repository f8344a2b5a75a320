//===- ctc_loss.cpp - A CTC loss with lengths as data ---------------------===//
//
// In torch, the size of a tensor that the forward saves for the backward
// depends on values: on the length of the batch's longest target. Here, the
// tensor's size is the upper bound that the targets' shape implies, so neither
// a sync nor a program for each set of lengths is needed:
//
//   log_alpha [batch, time, 2 * targets.size(1) + 1], zero where torch has no
//   element; the backward reads each row up to its own target's length
//
// Concatenated targets only give a loose bound, so they are padded to a matrix
// first. This reads their lengths, which are usually data, or cheap to compute
// from data.
//
//===----------------------------------------------------------------------===//

#include "events/op_error.h"
#include "fallback/eager_fallback.h"
#include "graph/torch_dispatch.h"
#include "ops/registration.h"
#include "tracing/trace.h"

#include <ATen/Functions.h>
#include <ATen/ops/ctc_loss_native.h>
#include <torch/library.h>

#include <algorithm>
#include <numeric>

using namespace torch_ltc;
using at::Tensor;
using c10::IValue;

namespace {

constexpr const char *opName = "torch_ltc::ctc_loss";

std::vector<int64_t> sizesOfLogAlpha(const Tensor &logProbs,
                                     const Tensor &targets) {
  int64_t longest = targets.size(-1);
  return {logProbs.size(1), logProbs.size(0), 2 * longest + 1};
}

/// The op's kernel on the CPU, for eager calls and for host calls of programs.
std::tuple<Tensor, Tensor> ctcLoss(const Tensor &logProbs,
                                   const Tensor &targets,
                                   const Tensor &inputLengths,
                                   const Tensor &targetLengths, int64_t blank,
                                   bool zeroInfinity) {
  auto [loss, logAlpha] = at::_ctc_loss(logProbs, targets, inputLengths,
                                        targetLengths, blank, zeroInfinity);
  Tensor padded =
      at::zeros(sizesOfLogAlpha(logProbs, targets), logAlpha.options());
  padded.narrow(2, 0, logAlpha.size(2)).copy_(logAlpha);
  return {loss, padded};
}

std::tuple<Tensor, Tensor> ctcLossMeta(const Tensor &logProbs,
                                       const Tensor &targets, const Tensor &,
                                       const Tensor &, int64_t, bool) {
  return {at::empty({logProbs.size(1)}, logProbs.options()),
          at::empty(sizesOfLogAlpha(logProbs, targets), logProbs.options())};
}

TORCH_LIBRARY_FRAGMENT(torch_ltc, library) {
  library.def("ctc_loss(Tensor log_probs, Tensor targets, Tensor "
              "input_lengths, Tensor target_lengths, int blank, bool "
              "zero_infinity) -> (Tensor, Tensor)");
  library.impl("ctc_loss",
               torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd,
                               TORCH_FN(ctcLoss)));
  library.impl("ctc_loss",
               torch::dispatch(c10::DispatchKey::Meta, TORCH_FN(ctcLossMeta)));
}

/// Whether eager's kernel rejects the arguments, whatever the values of the
/// tensors. The op would only fail when it is run.
bool isRejectedByEager(const Tensor &logProbs, const Tensor &targets,
                       const Tensor &inputLengths, const Tensor &targetLengths,
                       int64_t blank) {
  auto isList = [&](const Tensor &lengths) {
    return c10::isIntegralType(lengths.scalar_type(), false) &&
           lengths.numel() == logProbs.size(1);
  };
  auto dtype = logProbs.scalar_type();
  return (dtype != at::kFloat && dtype != at::kDouble) ||
         !isList(inputLengths) || !isList(targetLengths) || blank < 0 ||
         blank >= logProbs.size(2) || targets.dim() > 2 ||
         (targets.dim() == 2 && targets.size(0) != logProbs.size(1));
}

/// The kernel of `_ctc_loss.Tensor` for lazy tensors.
std::tuple<Tensor, Tensor> tracedCtcLoss(const Tensor &logProbs,
                                         const Tensor &targets,
                                         const Tensor &inputLengths,
                                         const Tensor &targetLengths,
                                         int64_t blank, bool zeroInfinity) {
  static const c10::OperatorHandle op =
      c10::Dispatcher::singleton().findSchemaOrThrow("aten::_ctc_loss",
                                                     "Tensor");
  const OpRecord &record = getOpRecord(opName);
  const char *reason =
      reasonForFallback("aten::_ctc_loss.Tensor", record.emitName);
  if (!reason && (logProbs.dim() != 3 || targets.dim() == 0 ||
                  (targets.dim() == 1 && logProbs.size(1) != 1)))
    reason = "targets in one row whose lengths don't add up";
  else if (!reason && isRejectedByEager(logProbs, targets, inputLengths,
                                        targetLengths, blank))
    reason = "arguments that eager PyTorch rejects";
  std::array<IValue, 6> arguments = {logProbs,      targets, inputLengths,
                                     targetLengths, blank,   zeroInfinity};
  if (reason) {
    torch::jit::Stack stack(arguments.begin(), arguments.end());
    runFallback(op, stack, reason);
    return {stack[0].toTensor(), stack[1].toTensor()};
  }
  std::vector<Tensor> results = traceOp(record, arguments);
  return {results[0], results[1]};
}

/// Returns concatenated targets as the rows of a matrix. Targets that torch
/// rejects are returned unchanged.
Tensor paddedTargets(const Tensor &targets, const Tensor &lengths) {
  std::vector<int64_t> sizes(size_t(lengths.numel()));
  Tensor numbers = lengths.to(at::kLong).contiguous();
  std::copy_n(numbers.const_data_ptr<int64_t>(), sizes.size(), sizes.begin());
  bool legal = std::all_of(sizes.begin(), sizes.end(),
                           [](int64_t size) { return size >= 0; }) &&
               std::accumulate(sizes.begin(), sizes.end(), int64_t(0)) ==
                   targets.numel();
  if (!legal || sizes.empty() || targets.numel() == 0)
    return targets;
  int64_t longest = *std::max_element(sizes.begin(), sizes.end());
  // Elements after the end of a target aren't read.
  Tensor places = at::zeros({int64_t(sizes.size()), longest}, at::kLong);
  for (int64_t row = 0, begin = 0; row < places.size(0); ++row) {
    int64_t end = begin + sizes[size_t(row)];
    places[row].narrow(0, 0, end - begin).copy_(at::arange(begin, end));
    begin = end;
  }
  return targets.take(places.to(targets.device()));
}

/// Computes the loss with the lengths on the device. torch's composite divides
/// by the lengths, which users keep on the CPU; only for torch's own devices
/// does it convert them to numbers first (torch 2.13).
Tensor ctcLossOfTensors(const Tensor &logProbs, const Tensor &targets,
                        const Tensor &inputLengths, const Tensor &targetLengths,
                        int64_t blank, int64_t reduction, bool zeroInfinity) {
  c10::Device device = logProbs.device();
  TORCH_CHECK(!device.is_lazy() || logProbs.numel() > 0,
              "log_probs tensor must not be empty");
  Tensor rows = targets.to(device);
  bool inOneRow = targets.dim() == 1 && logProbs.dim() == 3 &&
                  targetLengths.dim() == 1 &&
                  targetLengths.numel() == logProbs.size(1);
  if (inOneRow && device.is_lazy() && !hasTorchDispatch(targetLengths))
    rows = paddedTargets(rows, targetLengths.cpu());
  return at::native::ctc_loss(logProbs, rows, inputLengths.to(device),
                              targetLengths.to(device), blank, reduction,
                              zeroInfinity);
}

/// Passes the lengths as tensors: as numbers, they would need a program for
/// each batch.
Tensor ctcLossOfLists(const Tensor &logProbs, const Tensor &targets,
                      at::IntArrayRef inputLengths,
                      at::IntArrayRef targetLengths, int64_t blank,
                      int64_t reduction, bool zeroInfinity) {
  return ctcLossOfTensors(logProbs, targets, at::tensor(inputLengths),
                          at::tensor(targetLengths), blank, reduction,
                          zeroInfinity);
}

} // namespace

void torch_ltc::registerCtcLoss(torch::Library &library) {
  library.impl("_ctc_loss.Tensor", TORCH_FN(tracedCtcLoss));
}

void torch_ltc::registerCtcLossAutograd(torch::Library &library) {
  library.impl("ctc_loss.Tensor", TORCH_FN(ctcLossOfTensors));
  library.impl("ctc_loss.IntList", TORCH_FN(ctcLossOfLists));
}
