//===- in_place.h - In-place ops whose result is predictable ----*- C++ -*-===//

#ifndef TORCH_LTC_EAGER_SEMANTICS_IN_PLACE_H
#define TORCH_LTC_EAGER_SEMANTICS_IN_PLACE_H

#include "ir/op_record.h"

#include <ATen/core/Tensor.h>

namespace torch_ltc {

/// Returns the in-place form of a functional op, such as "aten::add_.Tensor"
/// for "aten::add.Tensor", if the op computes each element independently and
/// torch has an in-place form.
std::optional<c10::OperatorHandle> elementwiseInPlace(const OpRecord &record);

/// Returns the functional form of an in-place op, if there is one with the same
/// arguments.
std::optional<c10::OperatorHandle>
functionalOf(const c10::OperatorHandle &inPlace);

/// Whether the op's result can be written to the first argument: each tensor
/// satisfies `isOurs` and broadcasts to the first argument, or is a CPU tensor
/// of rank 0; and the result can be cast to the first argument's dtype.
bool fitsInPlace(const OpRecord &functional,
                 c10::ArrayRef<c10::IValue> arguments,
                 bool (*isOurs)(const at::Tensor &));

/// Throws eager's error if values of dtype `from` can't be written to a tensor
/// of dtype `to`.
void checkCast(at::ScalarType from, at::ScalarType to);

/// If the op has a simple dtype rule, throws eager's error if its result can't
/// be cast to `written`, the dtype of the written tensor.
void checkResultFits(const OpRecord &functional,
                     c10::ArrayRef<c10::IValue> arguments,
                     at::ScalarType written);

/// Whether the result's dtype follows from a simple rule and can be cast to
/// `written`.
bool castsTo(const OpRecord &functional, c10::ArrayRef<c10::IValue> arguments,
             at::ScalarType written);

} // namespace torch_ltc

#endif // TORCH_LTC_EAGER_SEMANTICS_IN_PLACE_H
