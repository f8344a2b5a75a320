//===- boxed_kernels.cpp - Registration of many boxed kernels -------------===//

#include "tracing/boxed_kernels.h"

using namespace torch_ltc;

AtenOps torch_ltc::atenOps() {
  auto &dispatcher = c10::Dispatcher::singleton();
  AtenOps ops;
  for (const c10::OperatorName &name : dispatcher.getAllOpNames())
    if (name.name.starts_with("aten::"))
      if (auto op = dispatcher.findSchema(name))
        ops.push_back(*op);
  return ops;
}

void torch_ltc::registerBoxedKernel(const c10::OperatorName &name,
                                    c10::DispatchKey key,
                                    c10::KernelFunction kernel) {
  // Never destroyed: deregistration at exit races with other libraries'.
  static auto *handles = new std::vector<c10::RegistrationHandleRAII>;
  handles->push_back(c10::Dispatcher::singleton().registerImpl(
      name, key, std::move(kernel), std::nullopt, nullptr,
      "registered by torch_ltc"));
}

c10::OperatorHandle torch_ltc::findOp(const c10::OperatorName &name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(
      name.name.c_str(), name.overload_name.c_str());
}
