//===- recurrence_gradients.h - Gradients of recurrent layers ---*- C++ -*-===//
//
// The ops of recurrence.h with their gradients, which can be differentiated.
// The first results are those of the op: output, hy and, for an LSTM, cy.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_OPS_RECURRENCE_GRADIENTS_H
#define TORCH_LTC_OPS_RECURRENCE_GRADIENTS_H

#include "ops/optional_tensor.h"

#include <vector>

namespace torch_ltc {

std::vector<at::Tensor>
lstmWithGradient(const at::Tensor &projections, const at::Tensor &hx,
                 const at::Tensor &cx, const at::Tensor &weight, bool reverse);

std::vector<at::Tensor> gruWithGradient(const at::Tensor &projections,
                                        const at::Tensor &hx,
                                        const at::Tensor &weight,
                                        const OptionalTensor &bias,
                                        bool reverse);

std::vector<at::Tensor> rnnWithGradient(const at::Tensor &projections,
                                        const at::Tensor &hx,
                                        const at::Tensor &weight, bool relu,
                                        bool reverse);

} // namespace torch_ltc

#endif // TORCH_LTC_OPS_RECURRENCE_GRADIENTS_H
