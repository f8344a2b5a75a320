//===- view_errors.cpp - Op and line in the errors of views ---------------===//
//
// If traced_views.cpp doesn't trace a view (for example, because its arguments
// are wrong), functionalization runs the op on Meta tensors to determine the
// result's sizes (torch 2.13). So Meta kernels throw the errors about a view's
// arguments. The kernels here call torch's Meta kernels and add the context
// that errors of other ops have. They are unboxed and in C++, so that they cost
// nothing if no error is thrown.
//
//===----------------------------------------------------------------------===//

#include "eager_semantics/registration.h"
#include "events/error_kind.h"
#include "events/op_error.h"

#include <ATen/CompositeExplicitAutogradFunctions.h>
#include <ATen/MetaFunctions.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <string>

using namespace torch_ltc;
using c10::DispatchKey;

namespace {

/// Whether functionalization has called the Meta kernel. Functionalization
/// excludes its own key for the call; a user's call on Meta tensors doesn't.
bool isInsideFunctionalization() {
  return c10::impl::tls_is_dispatch_key_excluded(DispatchKey::Functionalize);
}

/// Wraps `kernel`, torch's Meta kernel of the op `name`.
template <auto kernel, class Function = decltype(kernel)> struct MetaView;

template <auto kernel, class Result, class... Arguments>
struct MetaView<kernel, Result (*)(Arguments...)> {
  inline static const char *name = nullptr;

  static Result call(Arguments... arguments) {
    try {
      return kernel(std::forward<Arguments>(arguments)...);
    } catch (const c10::Error &error) {
      if (!isInsideFunctionalization())
        throw;
      throwError(kindOf(error), named(error.msg()) + opSuffix(name));
    }
  }

private:
  /// Replaces the type of a Meta tensor, as in "expand(MetaFloatType{[2]},
  /// ...)", by the user's type.
  static std::string named(std::string text) {
    size_t at = text.find("(Meta");
    if (at != std::string::npos && text.find("Type{", at) != std::string::npos)
      text.replace(at + 1, 4, "Lazy");
    return text;
  }
};

template <auto kernel> void add(torch::Library &library, const char *name) {
  MetaView<kernel>::name = name;
  library.impl(name, torch::CppFunction::makeFromUnboxedFunction(
                         &MetaView<kernel>::call));
}

using at::Tensor;

} // namespace

void torch_ltc::registerViewErrors() {
  auto *library = new torch::Library(torch::Library::IMPL, "aten",
                                     DispatchKey::Meta, __FILE__, __LINE__);
  namespace views = at::compositeexplicitautograd;
  add<at::meta::view_symint>(*library, "aten::view");
  add<at::meta::as_strided_symint>(*library, "aten::as_strided");
  add<at::meta::unfold>(*library, "aten::unfold");
  add<views::expand_symint>(*library, "aten::expand");
  add<views::transpose>(*library, "aten::transpose.int");
  add<views::permute>(*library, "aten::permute");
  add<views::select_symint>(*library, "aten::select.int");
  add<views::slice_symint>(*library, "aten::slice.Tensor");
  add<views::unsqueeze>(*library, "aten::unsqueeze");
  // Replaces torch's Python kernel, which raises an AssertionError.
  add<views::t_>(*library, "aten::t_");
  add<static_cast<Tensor (*)(const Tensor &, int64_t)>(views::squeeze)>(
      *library, "aten::squeeze.dim");
  add<static_cast<Tensor (*)(const Tensor &, at::IntArrayRef)>(views::squeeze)>(
      *library, "aten::squeeze.dims");
  add<views::diagonal>(*library, "aten::diagonal");
  add<views::split_symint>(*library, "aten::split.Tensor");
  add<views::split_with_sizes_symint>(*library, "aten::split_with_sizes");
  add<views::unbind>(*library, "aten::unbind.int");
}
