//===- backend.cpp - This backend for torch::lazy -------------------------===//

#include "device/backend.h"

#include "compilation/program_builder.h"
#include "device/base_pipeline.h"
#include "device/ir_builder.h"
#include "events/metrics.h"
#include "execution/step_queue.h"
#include "ir/node.h"
#include "memory/lazy_device.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>

#include <sstream>

using namespace torch_ltc;
using torch::lazy::BackendDataPtr;
using torch::lazy::BackendDevice;

void Backend::PrepareToExit() const { shutDownStepQueue(); }

void Backend::SetRngSeed(size_t seed) const { at::manual_seed(seed); }

const torch::lazy::IrBuilder *Backend::GetIrBuilder() const {
  return &irBuilder();
}

BackendDataPtr
Backend::MakeComputationDataFromTensor(const at::Tensor &tensor,
                                       const torch::lazy::Shape &,
                                       const BackendDevice &) const {
  return HostData::copyOf(tensor);
}

BackendDataPtr
Backend::MakeComputationDataFromScalar(const at::Scalar &scalar,
                                       const BackendDevice &) const {
  return HostData::ofScalar(scalar);
}

BackendDataPtr
Backend::CreateDataPlaceholder(const BackendDevice &,
                               const torch::lazy::Shape &shape) const {
  return HostData::create(shape, nullptr, nullptr);
}

BackendDataPtr
Backend::GetComputationDataFromNode(const torch::lazy::Node *node) const {
  const GraphNode *graphNode = asGraphNode(node);
  if (!graphNode->isData())
    return nullptr;
  return static_cast<const DataNode *>(graphNode)->data();
}

at::Tensor Backend::MakeTensorFromComputationData(
    const BackendDataPtr data, std::optional<at::ScalarType> type) const {
  at::Tensor tensor = static_cast<const HostData &>(*data).copyToTensor();
  return type ? tensor.to(*type) : tensor;
}

std::unique_ptr<torch::lazy::LoweringContext> Backend::CreateLoweringContext(
    const std::string &name, BackendDevice device,
    c10::ArrayRef<const torch::lazy::Node *> postOrder,
    torch::lazy::Util::EmissionMap emitStatus) const {
  return std::make_unique<TracedLoweringContext>(
      name, std::move(device), postOrder, std::move(emitStatus));
}

std::unique_ptr<torch::lazy::LoweringContext>
Backend::CreateLoweringContext(const std::string &name,
                               BackendDevice device) const {
  return std::make_unique<TracedLoweringContext>(name, std::move(device));
}

std::vector<std::string>
Backend::GetCompilationDevices(const std::string &device,
                               c10::ArrayRef<std::string>) const {
  return {device};
}

std::vector<torch::lazy::ComputationPtr>
Backend::Compile(std::vector<torch::lazy::ComputationPtr> instances) const {
  for (const torch::lazy::ComputationPtr &instance : instances)
    static_cast<TracedComputation &>(*instance).compile();
  return instances;
}

std::vector<BackendDataPtr>
Backend::ExecuteComputation(torch::lazy::ComputationPtr computation,
                            c10::ArrayRef<BackendDataPtr> arguments,
                            const BackendDevice &) const {
  return static_cast<const TracedComputation &>(*computation)
      .execute(arguments);
}

std::shared_ptr<torch::lazy::BackendDeviceType>
Backend::GetDefaultDeviceType() const {
  return std::make_shared<LazyDeviceType>();
}

void Backend::SetDefaultDeviceType(int8_t type) {
  TORCH_CHECK(type == int8_t(at::kCPU),
              "Device 'lazy' computes on the CPU; another default device type "
              "can't be set.");
}

void Backend::SetDefaultDeviceOrdinal(int64_t ordinal) {
  TORCH_CHECK(ordinal == 0,
              "There is only one lazy device, 'lazy:0'; 'lazy:", ordinal,
              "' can't be the default.");
}

std::vector<BackendDevice> Backend::GetBackendDevices() const {
  return {lazyDevice()};
}

BackendDevice Backend::GetBackendDevice(c10::Device device) const {
  TORCH_CHECK(device.index() <= 0, "There is one lazy device, 'lazy:0'; '",
              device, "' doesn't exist.");
  return lazyDevice();
}

std::string Backend::CreateMetricReport() const {
  std::ostringstream stream;
  stream << "torch_ltc:";
  for (const auto &[name, value] : counterValues())
    stream << " " << name << "=" << value;
  stream << "\n";
  return stream.str();
}

std::string Backend::GetComputationBackendText(
    const torch::lazy::ComputationPtr computation) const {
  return stageText(static_cast<const TracedComputation &>(*computation).graph(),
                   "torch");
}
