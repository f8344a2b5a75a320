//===- overlap_checks.cpp - Writes that eager rejects, op by op -----------===//
//
// Elementwise ops have their own checks (in_place.cpp, out_kernels.cpp). For
// other ops, the CPU kernels define which operands may overlap (torch 2.13);
// the tables below list the ops whose kernels check this. Eager doesn't check
// ops that aren't listed; if operands of such an op overlap, the order of reads
// and writes is undefined. The tables aren't columns of the op table, which
// lists functional ops: a functional op has an in-place and an `out` form with
// different rules, and a fifth of the ops here have no row in the op table.
//
//===----------------------------------------------------------------------===//

#include "eager_semantics/memory_overlap.h"
#include "eager_semantics/registration.h"
#include "ir/tensor_arguments.h"
#include "tracing/boxed_kernels.h"

using namespace torch_ltc;
using c10::DispatchKey;
using c10::IValue;
using c10::OperatorHandle;
using torch::jit::Stack;

namespace {

struct OverlapRule {
  const char *op;
  /// Which overlap of the read operands with the written tensor is an error.
  Overlap reads;
  /// Whether writing an element twice is an error; otherwise eager warns.
  bool once = true;
  /// Whether the op first copies `self` to the written tensor, unless they are
  /// the same tensor.
  bool selfIsCopied = false;
  /// Whether the op writes nothing to real tensors.
  bool writesComplex = false;
  /// Whether the op accepts a written tensor on another device, and does
  /// nothing if its second operand is the written tensor.
  bool copies = false;
};

const OverlapRule inPlaceOps[] = {
    {"aten::__ilshift__.Scalar", Overlap::Part},
    {"aten::__ilshift__.Tensor", Overlap::Part},
    {"aten::__irshift__.Scalar", Overlap::Part},
    {"aten::__irshift__.Tensor", Overlap::Part},
    {"aten::addbmm_", Overlap::None},
    {"aten::addmm_", Overlap::None},
    {"aten::addr_", Overlap::Part},
    {.op = "aten::conj_physical_",
     .reads = Overlap::None,
     .writesComplex = true},
    {.op = "aten::copy_", .reads = Overlap::Part, .copies = true},
    {"aten::cumprod_", Overlap::Part},
    {"aten::cumsum_", Overlap::Part},
    {"aten::fill_.Tensor", Overlap::None},
    {"aten::index_add_", Overlap::Whole},
    {"aten::index_copy_", Overlap::Whole},
    {"aten::index_fill_.int_Scalar", Overlap::Whole, /*once=*/false},
    {"aten::index_reduce_", Overlap::Whole},
    {"aten::_index_put_impl_", Overlap::Whole, /*once=*/false},
    {"aten::index_put_", Overlap::Whole, /*once=*/false},
    {"aten::ldexp_", Overlap::None},
    {"aten::masked_fill_.Scalar", Overlap::None, /*once=*/false},
    {"aten::masked_fill_.Tensor", Overlap::None, /*once=*/false},
    {"aten::masked_scatter_", Overlap::None},
    {"aten::mvlgamma_", Overlap::Part},
    {"aten::nan_to_num_", Overlap::Part},
    {"aten::put_", Overlap::Whole},
    {"aten::renorm_", Overlap::Part},
    {"aten::rrelu_with_noise_", Overlap::None},
    {"aten::scatter_.reduce", Overlap::Whole},
    {"aten::scatter_.src", Overlap::Whole},
    {"aten::scatter_.value", Overlap::Whole},
    {"aten::scatter_.value_reduce", Overlap::Whole},
    {"aten::scatter_add_", Overlap::Whole},
    {"aten::scatter_reduce_.two", Overlap::Whole},
    {"aten::bernoulli_.Tensor", Overlap::Part},
    {"aten::bernoulli_.float", Overlap::None},
    {"aten::cauchy_", Overlap::None},
    {"aten::exponential_", Overlap::None},
    {"aten::geometric_", Overlap::None},
    {"aten::log_normal_", Overlap::None},
    {"aten::normal_", Overlap::None},
    {"aten::random_", Overlap::None},
    {"aten::random_.from", Overlap::None},
    {"aten::random_.to", Overlap::None},
    {"aten::uniform_", Overlap::None},
};

const OverlapRule outOps[] = {
    {"aten::_chunk_cat.out", Overlap::None},
    {"aten::_fft_c2c.out", Overlap::None},
    {"aten::_fft_c2r.out", Overlap::None},
    {"aten::_fft_r2c.out", Overlap::None},
    {"aten::addbmm.out", Overlap::Part},
    {"aten::addmm.out", Overlap::Part},
    {"aten::addmv.out", Overlap::Part},
    {"aten::addr.out", Overlap::Part},
    {"aten::alias_copy.out", Overlap::None},
    {"aten::aminmax.out", Overlap::Part},
    {"aten::as_strided_copy.out", Overlap::None},
    {"aten::avg_pool2d.out", Overlap::None},
    {"aten::baddbmm.out", Overlap::Part},
    {"aten::bernoulli.out", Overlap::Part},
    {"aten::bucketize.Tensor_out", Overlap::None},
    {"aten::cat.out", Overlap::Whole},
    {"aten::complex.out", Overlap::Part},
    {"aten::conj_physical.out", Overlap::Part},
    {"aten::cumprod.out", Overlap::Part},
    {"aten::cumsum.out", Overlap::Part},
    {"aten::detach_copy.out", Overlap::None},
    {"aten::diag_embed.out", Overlap::None},
    {"aten::diagonal_copy.out", Overlap::None},
    {"aten::expand_copy.out", Overlap::None},
    {"aten::gather.out", Overlap::Whole},
    {"aten::index.Tensor_out", Overlap::Whole},
    {"aten::index_add.out", Overlap::Whole, true, /*selfIsCopied=*/true},
    {"aten::index_copy.out", Overlap::Whole, true, /*selfIsCopied=*/true},
    {"aten::index_reduce.out", Overlap::Whole, true, /*selfIsCopied=*/true},
    {"aten::index_select.out", Overlap::Whole},
    {"aten::isin.Tensor_Tensor_out", Overlap::None},
    {"aten::kthvalue.values", Overlap::Whole},
    {"aten::ldexp.out", Overlap::Part},
    {"aten::linalg_cross.out", Overlap::Whole},
    {"aten::linalg_qr.out", Overlap::None},
    {"aten::log_softmax.int_out", Overlap::None},
    {"aten::logcumsumexp.out", Overlap::Part},
    {"aten::logsumexp.out", Overlap::None},
    {"aten::masked_select.out", Overlap::Whole},
    {"aten::max.dim_max", Overlap::Part},
    {"aten::mean.out", Overlap::None},
    {"aten::median.dim_values", Overlap::Whole},
    {"aten::min.dim_min", Overlap::Part},
    {"aten::mm.out", Overlap::None},
    {"aten::mode.values", Overlap::Whole},
    {"aten::mse_loss.out", Overlap::Part},
    {"aten::mvlgamma.out", Overlap::None},
    {"aten::nan_to_num.out", Overlap::Part},
    {"aten::nonzero.out", Overlap::Whole},
    {"aten::norm.dtype_out", Overlap::None},
    {"aten::norm.out", Overlap::None},
    {"aten::permute_copy.out", Overlap::None},
    {"aten::polar.out", Overlap::Part},
    {"aten::rand.out", Overlap::None},
    {"aten::randn.out", Overlap::None},
    {"aten::renorm.out", Overlap::Part},
    {"aten::scatter.reduce_out", Overlap::Whole, true, /*selfIsCopied=*/true},
    {"aten::scatter.src_out", Overlap::Whole, true, /*selfIsCopied=*/true},
    {"aten::scatter.value_out", Overlap::Part},
    {"aten::scatter.value_reduce_out", Overlap::Part},
    {"aten::scatter_add.out", Overlap::Whole, true, /*selfIsCopied=*/true},
    {"aten::scatter_reduce.two_out", Overlap::Whole, true,
     /*selfIsCopied=*/true},
    {"aten::select_copy.int_out", Overlap::None},
    {"aten::slice_copy.Tensor_out", Overlap::None},
    {"aten::slice_scatter.out", Overlap::None},
    {"aten::softmax.int_out", Overlap::None},
    {"aten::sort.values", Overlap::Part},
    {"aten::sort.values_stable", Overlap::Part},
    {"aten::special_shifted_chebyshev_polynomial_u.out", Overlap::Part},
    {"aten::special_shifted_chebyshev_polynomial_v.out", Overlap::Part},
    {"aten::special_shifted_chebyshev_polynomial_w.out", Overlap::Part},
    {"aten::special_xlog1py.out", Overlap::Part},
    {"aten::special_zeta.out", Overlap::Part},
    {"aten::split_with_sizes_copy.out", Overlap::None},
    {"aten::squeeze_copy.dim_out", Overlap::None},
    {"aten::squeeze_copy.dims_out", Overlap::None},
    {"aten::squeeze_copy.out", Overlap::None},
    {"aten::stack.out", Overlap::Whole},
    {"aten::t_copy.out", Overlap::None},
    {"aten::take.out", Overlap::Whole},
    {"aten::topk.values", Overlap::Part},
    {"aten::transpose_copy.int_out", Overlap::None},
    {"aten::unbind_copy.int_out", Overlap::None},
    {"aten::unfold_copy.out", Overlap::None},
    {"aten::unsqueeze_copy.out", Overlap::None},
    {"aten::view_copy.out", Overlap::None},
    {"aten::where.self_out", Overlap::Part},
};

class CheckedWrite final : public KernelAround {
public:
  CheckedWrite(const OperatorHandle &op, const OverlapRule &row,
               c10::SafeKernelFunction previous)
      : KernelAround(std::move(previous)), row(row) {
    const auto &arguments = op.schema().arguments();
    for (size_t i = 0; i < arguments.size(); ++i) {
      bool isWritten =
          arguments[i].alias_info() && arguments[i].alias_info()->isWrite();
      (isWritten ? written : read).push_back(i);
      if (arguments[i].name() == "accumulate")
        accumulate = i;
    }
  }

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    auto arguments = torch::jit::last(*stack, written.size() + read.size());
    for (size_t i : written)
      if (arguments[i].isTensor())
        checkOutput(arguments[i].toTensor(), arguments);
      else if (arguments[i].isTensorList())
        for (const at::Tensor &output : arguments[i].toTensorVector())
          checkOutput(output, arguments);
    previous.callBoxed(op, keys, stack);
  }

private:
  void checkOutput(const at::Tensor &output,
                   c10::ArrayRef<IValue> arguments) const {
    if (output.defined() && output.device().is_lazy())
      check(output, arguments);
    else if (output.defined() && !row.copies)
      checkWrittenDevice(output, arguments, row.op);
  }

  void check(const at::Tensor &output, c10::ArrayRef<IValue> arguments) const {
    if ((row.writesComplex && !output.is_complex()) ||
        (row.copies && arguments[1].toTensor().is_same(output)))
      return; // writes nothing
    // PyTorch recognizes this message and appends advice to it.
    for (size_t i : read)
      TORCH_CHECK_NOT_IMPLEMENTED(!arguments[i].isTensor() ||
                                      !arguments[i].toTensor().defined() ||
                                      !arguments[i].toTensor().is_meta(),
                                  "Cannot copy out of meta tensor; no data!");
    // With `accumulate`, an element that is written twice would be added to
    // twice, so eager rejects such a write.
    if (row.once || (accumulate && arguments[*accumulate].toBool()))
      checkWrittenOnce(output, row.op);
    else if (!row.once && isWrittenTwice(output))
      warn();
    if (row.reads != Overlap::None)
      for (size_t i : read)
        checkValue(output, arguments[i],
                   row.selfIsCopied && i == 0 ? Overlap::Part : row.reads);
  }

  void warn() const {
    std::string name(row.op);
    name = name.substr(6, name.find('.') - 6); // without "aten::"
    if (name == "_index_put_impl_")
      name = "index_put_";
    TORCH_WARN(
        "Use of ", name,
        " on expanded tensors is deprecated. Please clone() the tensor before "
        "performing this operation. This also applies to advanced indexing "
        "e.g. ",
        name == "index_put_" ? "tensor[indices] = tensor"
                             : "tensor[mask] = scalar");
  }

  void checkValue(const at::Tensor &output, const IValue &value,
                  Overlap rejected) const {
    if (value.isTensor())
      checkRead(output, value.toTensor(), rejected, row.op);
    else if (value.isTensorList() || isOptionalTensorList(value))
      for (const IValue &element : value.toListRef())
        checkValue(output, element, rejected);
  }

  OverlapRule row;
  c10::SmallVector<size_t, 4> written, read;
  std::optional<size_t> accumulate; // position of the argument
};

void registerCheck(const OverlapRule &row, DispatchKey key) {
  auto op =
      c10::Dispatcher::singleton().findSchema(torch::jit::parseName(row.op));
  if (op &&
      !op->hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd))
    registerAround<CheckedWrite>(*op, key, *op, row);
}

} // namespace

void torch_ltc::registerOverlapChecks() {
  SilentRegistration silence;
  for (const OverlapRule &row : inPlaceOps)
    registerCheck(row, DispatchKey::Functionalize);
  for (const OverlapRule &row : outOps)
    registerCheck(row, DispatchKey::AutogradLazy);
}
