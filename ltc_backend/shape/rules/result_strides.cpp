//===- result_strides.cpp - Strides of results that aren't views ----------===//

#include "shape/strides.h"

#include "ir/op_record.h"
#include "shape/rules/arguments.h"
#include "shape/rules/convolution_strides.h"
#include "shape/rules/fft_strides.h"

#include <ATen/ExpandUtils.h>
#include <ATen/TensorUtils.h>
#include <c10/core/Contiguity.h>

#include <algorithm>
#include <iterator>

using namespace torch_ltc;

namespace {

/// An operand in TensorIterator's terms: broadcast dims have stride 0.
struct Operand {
  Strides strides;
  Operand(const at::Tensor &tensor, SizesRef shape)
      : Operand(tensor, shape, shape.size()) {}
  /// Aligns the tensor's dims with the dims of `shape` directly before `end`.
  /// The tensor has size 1 in all other dims.
  Operand(const at::Tensor &tensor, SizesRef shape, size_t end)
      : strides(shape.size(), 0) {
    size_t offset = end - size_t(tensor.dim());
    for (int64_t i = 0; i < tensor.dim(); ++i)
      if (tensor.size(i) != 1 || shape[offset + size_t(i)] == 1)
        strides[offset + size_t(i)] = tensor.stride(i);
    if (end == shape.size())
      return;
    for (size_t i = 0; i < shape.size(); ++i)
      if (shape[i] == 1 && (i < offset || i >= end))
        strides[i] = i < offset ? std::max<int64_t>(tensor.numel(), 1) : 1;
  }
  explicit Operand(Strides strides) : strides(std::move(strides)) {}
};

/// Returns a positive value if dim `a` must come after dim `b`, counted from
/// the innermost; a negative one if `a` must stay before `b`; 0 if no operand
/// decides.
int compareDims(c10::ArrayRef<Operand> operands, SizesRef shape, size_t a,
                size_t b) {
  for (const Operand &operand : operands) {
    int64_t strideA = operand.strides[a], strideB = operand.strides[b];
    if (strideA == 0 || strideB == 0)
      continue;
    if (strideA != strideB)
      return strideA < strideB ? -1 : 1;
    if (shape[a] > shape[b])
      return 1;
  }
  return 0;
}

/// Returns the dims from the innermost to the outermost, in row-major order
/// where no operand decides.
c10::SmallVector<size_t, 6> dimOrder(c10::ArrayRef<Operand> operands,
                                     SizesRef shape) {
  c10::SmallVector<size_t, 6> order;
  for (size_t i = shape.size(); i-- > 0;)
    order.push_back(i);
  for (size_t i = 1; i < order.size(); ++i)
    for (size_t at = i, before = i; before-- > 0;) {
      int comparison = compareDims(operands, shape, order[before], order[at]);
      if (comparison < 0)
        break;
      if (comparison > 0) {
        std::swap(order[before], order[at]);
        at = before;
      }
    }
  return order;
}

/// Dense strides in the order of dims that the operands determine.
Strides orderedStrides(c10::ArrayRef<Operand> operands, SizesRef shape) {
  auto order = dimOrder(operands, shape);
  bool isRowMajor = std::is_sorted(order.rbegin(), order.rend());
  if (isRowMajor)
    return packedStrides(shape);
  Strides strides(shape.size(), 0);
  int64_t next = 1;
  for (size_t dim : order) {
    strides[dim] = next;
    next *= shape[dim];
  }
  return strides;
}

void collectTensors(c10::ArrayRef<c10::IValue> arguments,
                    c10::SmallVectorImpl<const at::Tensor *> &tensors) {
  for (const c10::IValue &value : arguments)
    if (value.isTensor() && value.toTensor().defined())
      tensors.push_back(&value.toTensor());
    else if (value.isTensorList())
      for (const c10::IValue &element : value.toListRef())
        tensors.push_back(&element.toTensor());
}

/// Returns the strides in the cases in which TensorIterator doesn't compare the
/// order of dims, otherwise nullopt.
std::optional<Strides> simpleStrides(c10::ArrayRef<const at::Tensor *> tensors,
                                     SizesRef shape) {
  bool contiguous = true, channelsLast = true, equal = true;
  for (const at::Tensor *tensor : tensors) {
    if (tensor->sizes() != shape)
      return std::nullopt;
    contiguous &= tensor->is_contiguous();
    channelsLast &= tensor->is_contiguous(at::MemoryFormat::ChannelsLast);
    equal &= tensor->is_non_overlapping_and_dense() &&
             tensor->strides() == tensors[0]->strides();
  }
  if (contiguous)
    return packedStrides(shape);
  if (channelsLast)
    return packedStrides(shape, at::MemoryFormat::ChannelsLast);
  if (equal)
    return Strides(tensors[0]->strides());
  return std::nullopt;
}

/// Whether an operand is a number, which TensorIterator treats as a tensor of
/// rank 0.
bool hasNumberOperand(const Arguments &named) {
  for (size_t i = 0; i < named.size(); ++i)
    if (named[i].isScalar() && named.name(i) == "other")
      return true;
  return false;
}

using TensorPointers = c10::SmallVector<const at::Tensor *, 4>;

/// The tensors among an op's arguments in TensorIterator's order.
TensorPointers elementwiseOperands(const Arguments &named, StrideRule rule,
                                   c10::ArrayRef<c10::IValue> arguments) {
  TensorPointers tensors;
  collectTensors(arguments, tensors);
  // The op's first tensor, usually a gradient, is TensorIterator's last
  // operand.
  if (rule == StrideRule::ElementwiseFirstLast)
    std::rotate(tensors.begin(), tensors.begin() + 1, tensors.end());
  if (rule == StrideRule::ElementwiseReversed)
    std::reverse(tensors.begin(), tensors.end());
  if (rule == StrideRule::RreluBackward) { // (grad, self, noise, ...)
    bool isTraining = named[*named.find("training")].toBool();
    return {tensors[isTraining ? 2 : 1], tensors[0]};
  }
  return tensors;
}

Strides elementwiseStrides(const Arguments &named, StrideRule rule,
                           c10::ArrayRef<c10::IValue> arguments,
                           SizesRef shape) {
  TensorPointers tensors = elementwiseOperands(named, rule, arguments);
  if (!hasNumberOperand(named))
    if (auto strides = simpleStrides(tensors, shape))
      return *strides;
  c10::SmallVector<Operand, 4> operands;
  for (const at::Tensor *tensor : tensors)
    if (tensor->dim() <= int64_t(shape.size()))
      operands.emplace_back(*tensor, shape);
  return orderedStrides(operands, shape);
}

/// The argument `indices` of aten::index: the indexed dims and the index
/// tensors for them.
struct Indices {
  c10::SmallVector<size_t, 4> dims;
  c10::SmallVector<at::Tensor, 4> tensors;
  bool hasMask = false;

  explicit Indices(const c10::IValue &list) {
    size_t dim = 0;
    for (const c10::IValue &element : list.toListRef()) {
      if (element.isTensor() && element.toTensor().defined()) {
        dims.push_back(dim);
        tensors.push_back(element.toTensor());
        hasMask |= tensors.back().scalar_type() == at::kBool ||
                   tensors.back().scalar_type() == at::kByte;
      }
      ++dim;
    }
  }

  bool areAdjacent() const {
    return dims.back() - dims.front() + 1 == dims.size();
  }
  size_t rank() const {
    int64_t most = 0;
    for (const at::Tensor &tensor : tensors)
      most = std::max(most, tensor.dim());
    return size_t(most);
  }
};

/// Returns the strides of the result of aten::index, which reads its operand
/// with the indexed dims replaced by the dims of the indices. These have stride
/// 0, and come first if the indexed dims aren't adjacent.
Strides indexStrides(c10::ArrayRef<c10::IValue> arguments, SizesRef shape) {
  const at::Tensor &self = arguments[0].toTensor();
  Indices indices(arguments[1]);
  if (indices.dims.empty() || indices.hasMask)
    return packedStrides(shape);
  size_t begin = indices.areAdjacent() ? indices.dims.front() : 0;
  size_t end = begin + indices.rank();
  Strides read;
  for (size_t dim = 0; dim < size_t(self.dim()); ++dim) {
    if (read.size() == begin)
      read.append(end - begin, 0);
    if (!std::count(indices.dims.begin(), indices.dims.end(), dim))
      read.push_back(self.stride(int64_t(dim)));
  }
  if (read.size() != shape.size())
    return packedStrides(shape);
  c10::SmallVector<Operand, 4> operands;
  operands.emplace_back(std::move(read));
  for (const at::Tensor &tensor : indices.tensors)
    operands.emplace_back(tensor, shape, end);
  return orderedStrides(operands, shape);
}

/// Returns the first memory format, other than contiguous, that an operand of
/// rank `rank` suggests; contiguous if there is none.
at::MemoryFormat suggestedFormat(c10::ArrayRef<c10::IValue> arguments,
                                 size_t rank) {
  c10::SmallVector<const at::Tensor *, 4> tensors;
  collectTensors(arguments, tensors);
  for (const at::Tensor *tensor : tensors)
    if (size_t(tensor->dim()) == rank) {
      at::MemoryFormat format = tensor->suggest_memory_format();
      if (format != at::MemoryFormat::Contiguous)
        return format;
    }
  return at::MemoryFormat::Contiguous;
}

/// The strides of BatchNorm's results and gradients. BatchNorm checks for
/// row-major strides first: with a dim of size 1, strides may fit several
/// memory formats.
Strides batchNormStrides(const Arguments &named, SizesRef shape) {
  const at::Tensor &input = named[*named.find("input")].toTensor();
  if (size_t(input.dim()) != shape.size() || input.is_contiguous())
    return packedStrides(shape);
  return packedStrides(shape, input.suggest_memory_format());
}

/// The strides of aten::constant_pad_nd, which clones a part of its operand if
/// no dim grows.
Strides constantPadStrides(const Arguments &named,
                           c10::ArrayRef<c10::IValue> arguments,
                           SizesRef shape) {
  const at::Tensor &self = arguments[0].toTensor();
  Sizes pads = named.integers(1);
  if (std::any_of(pads.begin(), pads.end(), [](int64_t n) { return n > 0; }))
    return packedStrides(shape, self.suggest_memory_format());
  // torch considers an empty tensor dense.
  if (c10::multiply_integers(shape) == 0 ||
      c10::_compute_non_overlapping_and_dense(shape, self.strides()))
    return Strides(self.strides());
  return Strides(at::infer_dense_strides(shape, self.strides()));
}

/// Returns the memory format that all of the concatenated `tensors` suggest;
/// contiguous if they differ.
at::MemoryFormat joinedFormat(const c10::IValue &tensors) {
  std::optional<at::MemoryFormat> common;
  for (const c10::IValue &element : tensors.toListRef()) {
    at::MemoryFormat format = element.toTensor().suggest_memory_format();
    if (common && format != *common)
      return at::MemoryFormat::Contiguous;
    common = format;
  }
  return common.value_or(at::MemoryFormat::Contiguous);
}

/// The memory format that `tensor` suggests with a dim of size 1 appended.
at::MemoryFormat widenedFormat(const at::Tensor &tensor) {
  Sizes sizes(tensor.sizes());
  Strides strides(tensor.strides());
  sizes.push_back(1);
  strides.push_back(1);
  if (c10::is_channels_last_strides_2d(sizes, strides))
    return at::MemoryFormat::ChannelsLast;
  return c10::is_channels_last_strides_3d(sizes, strides)
             ? at::MemoryFormat::ChannelsLast3d
             : at::MemoryFormat::Contiguous;
}

/// The strides of aten::stack. torch concatenates the tensors along dim `dim`
/// and splits that dim; if the new dim is the last one, torch unsqueezes the
/// tensors and concatenates them.
Strides stackStrides(const Arguments &named,
                     c10::ArrayRef<c10::IValue> arguments, SizesRef shape) {
  size_t rank = shape.size() - 1;
  size_t dim = size_t(dimFromFront(named.integer(1), int64_t(shape.size())));
  if (dim == rank)
    return packedStrides(shape,
                         widenedFormat(arguments[0].toListRef()[0].toTensor()));
  Sizes joined(shape.begin(), shape.end());
  joined.erase(joined.begin() + int64_t(dim));
  joined[dim] *= shape[dim];
  Strides strides = packedStrides(joined, joinedFormat(arguments[0]));
  auto split = at::detail::computeStride(joined, strides, shape);
  return split ? Strides(*split) : packedStrides(shape);
}

/// Whether roll's result is row-major in any case. Without dims, eager rolls
/// the flat tensor. A roll that moves nothing along a dim concatenates the
/// whole tensor with an empty one, which always suggests row-major order.
bool rollsToRows(const Arguments &named, SizesRef shape) {
  Sizes shifts = named.integers(1), dims = named.integers(2);
  for (size_t i = 0; i < dims.size(); ++i) {
    size_t dim = size_t(dimFromFront(dims[i], int64_t(shape.size())));
    if (shifts[i] % shape[dim] == 0)
      return true;
  }
  return dims.empty();
}

/// Returns the strides of matrices that LAPACK writes column by column. A
/// result that isn't computed (Q of qr in mode "r") has a lower rank than the
/// op's operand and is row-major.
Strides matrixStrides(c10::ArrayRef<c10::IValue> arguments, SizesRef shape) {
  Strides strides = packedStrides(shape);
  int64_t rank = 2;
  for (const c10::IValue &argument : arguments)
    if (argument.isTensor())
      rank = std::max(rank, argument.toTensor().dim());
  size_t last = shape.size() - 1;
  if (int64_t(shape.size()) == rank) {
    strides[last] = std::max<int64_t>(shape[last - 1], 1);
    strides[last - 1] = 1;
  }
  return strides;
}

} // namespace

std::optional<at::MemoryFormat>
torch_ltc::formatArgument(const c10::FunctionSchema &schema,
                          c10::ArrayRef<c10::IValue> arguments) {
  Arguments named(schema, arguments);
  if (std::optional<size_t> position = named.find("memory_format"))
    return named[*position].toMemoryFormat();
  return std::nullopt;
}

Strides torch_ltc::packedStrides(SizesRef sizes, at::MemoryFormat format) {
  if (format == at::MemoryFormat::ChannelsLast) {
    TORCH_CHECK(sizes.size() == 4,
                "required rank 4 tensor to use channels_last format");
    return Strides(c10::get_channels_last_strides_2d(sizes));
  }
  if (format == at::MemoryFormat::ChannelsLast3d) {
    TORCH_CHECK(sizes.size() == 5,
                "required rank 5 tensor to use channels_last_3d format");
    return Strides(c10::get_channels_last_strides_3d(sizes));
  }
  Strides strides(sizes.size(), 1);
  for (size_t i = sizes.size(); i-- > 1;)
    strides[i - 1] = strides[i] * std::max<int64_t>(sizes[i], 1);
  return strides;
}

Strides torch_ltc::copyStrides(const at::Tensor &like,
                               std::optional<at::MemoryFormat> format) {
  at::MemoryFormat wanted = format.value_or(at::MemoryFormat::Preserve);
  if (wanted != at::MemoryFormat::Preserve)
    return packedStrides(like.sizes(), wanted);
  if (like.is_non_overlapping_and_dense())
    return Strides(like.strides());
  return Strides(at::infer_dense_strides(like.sizes(), like.strides()));
}

Strides torch_ltc::resultStrides(StrideRule rule,
                                 const c10::FunctionSchema &schema,
                                 c10::ArrayRef<c10::IValue> arguments,
                                 SizesRef resultSizes) {
  Arguments named(schema, arguments);
  bool likeFirst = arguments[0].isTensor() &&
                   arguments[0].toTensor().defined() &&
                   arguments[0].toTensor().sizes() == resultSizes;
  switch (rule) {
  case StrideRule::Angle: // of complex numbers: in new memory
    if (arguments[0].toTensor().is_complex())
      break;
    [[fallthrough]];
  case StrideRule::Elementwise:
  case StrideRule::ElementwiseFirstLast:
  case StrideRule::ElementwiseReversed:
  case StrideRule::RreluBackward:
    return elementwiseStrides(named, rule, arguments, resultSizes);
  case StrideRule::Index:
    return indexStrides(arguments, resultSizes);
  case StrideRule::LikeSelf:
    if (likeFirst)
      return Strides(arguments[0].toTensor().strides());
    break;
  case StrideRule::Preserve:
    if (likeFirst)
      return copyStrides(arguments[0].toTensor(),
                         formatArgument(schema, arguments));
    break;
  case StrideRule::HeadsInside: // [batch, length, heads, features], transposed
    return Strides({resultSizes[1] * resultSizes[2] * resultSizes[3],
                    resultSizes[3], resultSizes[1] * resultSizes[3], 1});
  case StrideRule::MatrixColumns:
    return matrixStrides(arguments, resultSizes);
  case StrideRule::Cat:
    return packedStrides(resultSizes, joinedFormat(arguments[0]));
  case StrideRule::Stack:
    return stackStrides(named, arguments, resultSizes);
  case StrideRule::Roll:
    if (!named.integers(2).empty() &&
        c10::multiply_integers(resultSizes) == 0) // a clone
      return copyStrides(arguments[0].toTensor(), at::MemoryFormat::Preserve);
    if (rollsToRows(named, resultSizes))
      break;
    [[fallthrough]];
  case StrideRule::MemoryFormat:
    return packedStrides(resultSizes,
                         suggestedFormat(arguments, resultSizes.size()));
  case StrideRule::InputFormat:
    return packedStrides(
        resultSizes, suggestedFormat(arguments.slice(1), resultSizes.size()));
  case StrideRule::ConstantPad:
    return constantPadStrides(named, arguments, resultSizes);
  case StrideRule::Fft:
    return fftStrides(named, resultSizes);
  case StrideRule::Convolution:
    return convolutionStrides(named, resultSizes);
  case StrideRule::BatchNorm:
    return batchNormStrides(named, resultSizes);
  case StrideRule::Contiguous:
  case StrideRule::View:
    break;
  }
  return packedStrides(resultSizes);
}
