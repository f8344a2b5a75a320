//===- HostCallCommand.cpp - Ops that the host computes -------------------===//

#include "Diagnostics.h"
#include "PreparedCommand.h"

#include "torch_ltc-c/runtime.h"

#include "llvm/ADT/SmallVector.h"

#include <atomic>

using namespace torch_ltc::runtime;

namespace {

std::atomic<LtcHostFunction> hostFunction{nullptr};

class HostCallCommand : public PreparedCommand {
public:
  explicit HostCallCommand(const Command &command)
      : command(command), call(command.host()) {}

  llvm::Error run(const RunContext &context) override {
    llvm::SmallVector<LtcHostTensor, 4> inputs, outputs;
    for (auto [type, ref] : llvm::zip_equal(call.input_types(), call.inputs()))
      inputs.push_back(tensorOf(type, context.resolve(ref)));
    for (auto [type, ref] :
         llvm::zip_equal(call.output_types(), call.outputs()))
      outputs.push_back(tensorOf(type, context.resolve(ref)));
    LtcHostCall host = {call.op().c_str(),
                        call.arguments().c_str(),
                        inputs.size(),
                        inputs.data(),
                        outputs.size(),
                        outputs.data(),
                        context.locationOf(command)};
    LtcStatus status = hostFunction.load()(&host);
    if (!status)
      return llvm::Error::success();
    std::string message = ltcStatusMessage(status);
    ltcStatusDestroy(status);
    return failure("{0}", message);
  }

private:
  static LtcHostTensor tensorOf(const TensorType &type, char *data) {
    return {LtcDType(type.dtype()), size_t(type.sizes_size()),
            type.sizes().data(), data};
  }

  const Command &command;
  const HostCall &call;
};

} // namespace

void ltcSetHostFunction(LtcHostFunction function) { hostFunction = function; }

llvm::Expected<PreparedCommandPtr>
torch_ltc::runtime::prepareHost(const Command &command, const Preparation &) {
  if (!hostFunction)
    return failure("{0} is computed by PyTorch's kernel, which this process "
                   "doesn't have: import torch_ltc first.",
                   command.host().op());
  return std::make_unique<HostCallCommand>(command);
}
