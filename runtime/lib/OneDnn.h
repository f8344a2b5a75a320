//===- OneDnn.h - Primitives with their arguments -------------------------===//

#ifndef TORCH_LTC_RUNTIME_ONEDNN_H
#define TORCH_LTC_RUNTIME_ONEDNN_H

#include "executable.pb.h"

#include "llvm/Support/Error.h"

#include <dnnl.hpp>

#include <optional>
#include <vector>

namespace torch_ltc::runtime {

/// The process's CPU engine.
const dnnl::engine &oneDnnEngine();

/// oneDNN's name of a dtype that it computes products and convolutions in;
/// the others go to the own loops.
std::optional<dnnl::memory::data_type> oneDnnType(DType dtype);

/// Attributes that let the caller supply the scratchpad.
dnnl::primitive_attr oneDnnAttributes();

/// Whether oneDNN found an implementation that is worth calling: its reference
/// loops are slower than the own ones.
bool isWorthCalling(const dnnl::primitive_desc_base &description);

/// A primitive and its memory objects, whose addresses are set before each
/// execution. Not thread-safe; the primitive behind it is shared through
/// oneDNN's own cache.
class OneDnnCall {
public:
  OneDnnCall() = default;
  explicit OneDnnCall(const dnnl::primitive_desc_base &description);

  /// Declares argument `index` (DNNL_ARG_...), to be given by `set`.
  void declare(int index, const dnnl::memory::desc &description);
  void set(int index, void *data);

  size_t scratchpadBytes() const { return scratchpad; }
  /// `scratch`: scratchpadBytes() bytes, 64-byte aligned.
  llvm::Error execute(void *scratch);

private:
  dnnl::primitive primitive;
  dnnl::stream stream;
  std::vector<dnnl::memory> memories;
  std::vector<dnnl_exec_arg_t> arguments;
  size_t scratchpad = 0;
};

} // namespace torch_ltc::runtime

#endif // TORCH_LTC_RUNTIME_ONEDNN_H
