//===- OneDnn.cpp - Primitives with their arguments -----------------------===//

#include "OneDnn.h"

#include "Diagnostics.h"

#include "llvm/ADT/StringRef.h"

#include <dnnl_debug.h>

using namespace torch_ltc::runtime;

const dnnl::engine &torch_ltc::runtime::oneDnnEngine() {
  // Never destroyed: another thread may run a program at exit.
  static const dnnl::engine *engine =
      new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

std::optional<dnnl::memory::data_type>
torch_ltc::runtime::oneDnnType(DType dtype) {
  switch (dtype) {
  case FLOAT32:
    return dnnl::memory::data_type::f32;
  case BFLOAT16:
    return dnnl::memory::data_type::bf16;
  case FLOAT16:
    return dnnl::memory::data_type::f16;
  default:
    return std::nullopt;
  }
}

dnnl::primitive_attr torch_ltc::runtime::oneDnnAttributes() {
  dnnl::primitive_attr attributes;
  // The caller supplies the scratchpad. oneDNN's default one is allocated in
  // each execution, or shared by all primitives of a thread, depending on how
  // oneDNN was built.
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

bool torch_ltc::runtime::isWorthCalling(
    const dnnl::primitive_desc_base &description) {
  if (!description)
    return false;
  // On AArch64 without SVE, oneDNN's only implementation is "gemm:ref".
  llvm::StringRef name = description.impl_info_str();
  return !name.starts_with("ref") && !name.starts_with("gemm:ref");
}

OneDnnCall::OneDnnCall(const dnnl::primitive_desc_base &description)
    : primitive(description.get()), stream(oneDnnEngine()),
      scratchpad(description.scratchpad_desc().get_size()) {
  if (scratchpad)
    declare(DNNL_ARG_SCRATCHPAD, description.scratchpad_desc());
}

void OneDnnCall::declare(int index, const dnnl::memory::desc &description) {
  memories.emplace_back(description, oneDnnEngine(), nullptr);
  arguments.push_back({index, memories.back().get()});
}

void OneDnnCall::set(int index, void *data) {
  for (dnnl_exec_arg_t &argument : arguments)
    if (argument.arg == index)
      dnnl_memory_set_data_handle(argument.memory, data);
}

llvm::Error OneDnnCall::execute(void *scratch) {
  if (scratchpad)
    set(DNNL_ARG_SCRATCHPAD, scratch);
  dnnl_status_t status = dnnl_primitive_execute(
      primitive.get(), stream.get(), int(arguments.size()), arguments.data());
  if (status == dnnl_success)
    return llvm::Error::success();
  return failure("oneDNN reports '{0}'.", dnnl_status2str(status));
}
