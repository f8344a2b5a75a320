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

/// Returns oneDNN's data type for `dtype`, or std::nullopt if the runtime's own
/// loops compute the products and convolutions of this dtype.
std::optional<dnnl::memory::data_type> oneDnnType(DType dtype);

/// Attributes for a scratchpad that the caller supplies.
dnnl::primitive_attr oneDnnAttributes();

/// Whether oneDNN found an implementation other than its reference loops, which
/// are slower than the runtime's own loops.
bool isWorthCalling(const dnnl::primitive_desc_base &description);

/// A primitive and its memory objects, whose addresses are set before each
/// execution. Not thread-safe; oneDNN's own cache shares the underlying
/// primitive.
class OneDnnCall {
public:
  OneDnnCall() = default;
  explicit OneDnnCall(const dnnl::primitive_desc_base &description);

  /// Declares argument `index` (DNNL_ARG_...), whose address `set` provides.
  void declare(int index, const dnnl::memory::desc &description);
  void set(int index, void *data);

  size_t scratchpadBytes() const { return scratchpad; }
  /// `scratch` points to scratchpadBytes() bytes, 64-byte aligned.
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
