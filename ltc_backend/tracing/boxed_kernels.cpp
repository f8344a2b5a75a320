//===- boxed_kernels.cpp - Registration of many boxed kernels -------------===//

#include "tracing/boxed_kernels.h"

#include <mutex>

using namespace torch_ltc;

namespace {

/// Collects the ops of some namespaces: the dispatcher passes all existing ops
/// to a new listener. Unlike reading the dispatcher's list of names, listening
/// needs no copies and no look-ups of names.
class Collector final : public c10::OpRegistrationListener {
public:
  Collector(std::initializer_list<std::string_view> namespaces,
            std::vector<c10::OperatorHandle> &ops)
      : namespaces(namespaces), ops(ops) {}

  void onOperatorRegistered(const c10::OperatorHandle &op) override {
    for (std::string_view wanted : namespaces)
      if (op.operator_name().name.starts_with(wanted))
        ops.push_back(op);
  }
  void onOperatorDeregistered(const c10::OperatorHandle &) override {}

private:
  std::initializer_list<std::string_view> namespaces;
  std::vector<c10::OperatorHandle> &ops;
};

} // namespace

std::vector<c10::OperatorHandle>
torch_ltc::opsOf(std::initializer_list<std::string_view> namespaces) {
  std::vector<c10::OperatorHandle> ops;
  // The listener is removed at the end of the function.
  const c10::RegistrationHandleRAII listening =
      c10::Dispatcher::singleton().addRegistrationListener(
          std::make_unique<Collector>(namespaces, ops));
  return ops;
}

AtenOps torch_ltc::atenOps() { return opsOf({"aten::"}); }

std::string torch_ltc::textOf(const c10::OperatorName &name) {
  return name.overload_name.empty() ? name.name
                                    : name.name + "." + name.overload_name;
}

void torch_ltc::registerBoxedKernel(const c10::OperatorName &name,
                                    c10::DispatchKey key,
                                    c10::KernelFunction kernel) {
  // Never destroyed: deregistration at exit would race with that of other
  // libraries.
  static auto *handles = new std::vector<c10::RegistrationHandleRAII>;
  static std::mutex mutex;
  c10::RegistrationHandleRAII handle =
      c10::Dispatcher::singleton().registerImpl(name, key, std::move(kernel),
                                                std::nullopt, nullptr,
                                                "registered by torch_ltc");
  // One thread may register what the first lazy tensor needs while another one
  // registers what a second thread needs (graph/live_tensors.h).
  std::scoped_lock lock(mutex);
  handles->push_back(std::move(handle));
}

c10::OperatorHandle torch_ltc::findOp(const c10::OperatorName &name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(
      name.name.c_str(), name.overload_name.c_str());
}

bool torch_ltc::drawsNumbers(const c10::OperatorHandle &op) {
  for (const c10::Argument &argument : op.schema().arguments())
    if (argument.name() == "generator")
      return true;
  return op.hasTag(at::Tag::nondeterministic_seeded);
}
