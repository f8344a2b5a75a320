//===- recurrence.h - Kernels of recurrent layers ---------------*- C++ -*-===//
//
// Each direction of a layer of nn.LSTM, nn.GRU or nn.RNN is one op: T steps of
// B rows with H states. With PyTorch's ops, a step would be up to ten ops,
// whose calls take longer than their computation, and each length of the
// sequence would be another program.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_OPS_RECURRENCE_H
#define TORCH_LTC_OPS_RECURRENCE_H

#include "ops/optional_tensor.h"

#include <tuple>

namespace torch_ltc {

/// Computes one direction of an LSTM layer. Operands: projections [T, B, 4H],
/// hx and cx [B, H], weight [4H, H], all of one floating-point dtype. Results:
/// output [T, B, H], hy and cy [B, H], the gates i, f, g, o [T, B, 4H], and the
/// cells of all steps [T, B, H].
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>
lstm(const at::Tensor &projections, const at::Tensor &hx, const at::Tensor &cx,
     const at::Tensor &weight, bool reverse);

/// Returns the gradients of projections, hx, cx and weight, in these operands'
/// shapes.
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>
lstmBackward(const OptionalTensor &gradOutput, const OptionalTensor &gradHy,
             const OptionalTensor &gradCy, const at::Tensor &hx,
             const at::Tensor &cx, const at::Tensor &weight,
             const at::Tensor &output, const at::Tensor &gates,
             const at::Tensor &cells, bool reverse);

/// Computes one direction of a GRU layer. Operands: projections [T, B, 3H], hx
/// [B, H], weight [3H, H], bias [3H], all of one floating-point dtype. Results:
/// output [T, B, H], hy [B, H], and r, z, n and the hidden state's part of n
/// [T, B, 4H].
std::tuple<at::Tensor, at::Tensor, at::Tensor>
gru(const at::Tensor &projections, const at::Tensor &hx,
    const at::Tensor &weight, const OptionalTensor &bias, bool reverse);

/// Returns the gradients of projections, hx, weight and bias, in these
/// operands' shapes.
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>
gruBackward(const OptionalTensor &gradOutput, const OptionalTensor &gradHy,
            const at::Tensor &hx, const at::Tensor &weight,
            const at::Tensor &output, const at::Tensor &gates, bool reverse);

/// Computes one direction of a layer of nn.RNN with ReLU or tanh. Operands:
/// projections [T, B, H], which include the biases, hx [B, H] and weight [H,
/// H], all of one floating-point dtype. Results: output [T, B, H] and hy [B,
/// H].
std::tuple<at::Tensor, at::Tensor> rnn(const at::Tensor &projections,
                                       const at::Tensor &hx,
                                       const at::Tensor &weight, bool relu,
                                       bool reverse);

/// Returns the gradients of projections, hx and weight, in these operands'
/// shapes.
std::tuple<at::Tensor, at::Tensor, at::Tensor>
rnnBackward(const OptionalTensor &gradOutput, const OptionalTensor &gradHy,
            const at::Tensor &hx, const at::Tensor &weight,
            const at::Tensor &output, bool relu, bool reverse);

} // namespace torch_ltc

#endif // TORCH_LTC_OPS_RECURRENCE_H
