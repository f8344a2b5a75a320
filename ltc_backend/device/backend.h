//===- backend.h - This backend for torch::lazy -----------------*- C++ -*-===//

#ifndef TORCH_LTC_DEVICE_BACKEND_H
#define TORCH_LTC_DEVICE_BACKEND_H

#include <torch/csrc/lazy/backend/backend_interface.h>

namespace torch_ltc {

/// Implements torch::lazy's backend interface, with one device, "lazy:0", which
/// computes on the CPU.
class Backend final : public torch::lazy::BackendImplInterface {
public:
  void PrepareToExit() const override;
  void SetRngSeed(size_t seed) const override;
  const torch::lazy::IrBuilder *GetIrBuilder() const override;

  torch::lazy::BackendDataPtr MakeComputationDataFromTensor(
      const at::Tensor &tensor, const torch::lazy::Shape &shape,
      const torch::lazy::BackendDevice &device) const override;
  torch::lazy::BackendDataPtr MakeComputationDataFromScalar(
      const at::Scalar &scalar,
      const torch::lazy::BackendDevice &device) const override;
  torch::lazy::BackendDataPtr
  CreateDataPlaceholder(const torch::lazy::BackendDevice &device,
                        const torch::lazy::Shape &shape) const override;
  torch::lazy::BackendDataPtr
  GetComputationDataFromNode(const torch::lazy::Node *node) const override;
  at::Tensor MakeTensorFromComputationData(
      const torch::lazy::BackendDataPtr data,
      std::optional<at::ScalarType> logicalScalarType) const override;

  std::unique_ptr<torch::lazy::LoweringContext> CreateLoweringContext(
      const std::string &name, torch::lazy::BackendDevice device,
      c10::ArrayRef<const torch::lazy::Node *> postOrder,
      torch::lazy::Util::EmissionMap emitStatus) const override;
  std::unique_ptr<torch::lazy::LoweringContext>
  CreateLoweringContext(const std::string &name,
                        torch::lazy::BackendDevice device) const override;
  std::vector<std::string>
  GetCompilationDevices(const std::string &device,
                        c10::ArrayRef<std::string> devices) const override;
  std::vector<torch::lazy::ComputationPtr>
  Compile(std::vector<torch::lazy::ComputationPtr> instances) const override;
  std::vector<torch::lazy::BackendDataPtr>
  ExecuteComputation(torch::lazy::ComputationPtr computation,
                     c10::ArrayRef<torch::lazy::BackendDataPtr> arguments,
                     const torch::lazy::BackendDevice &device) const override;

  std::shared_ptr<torch::lazy::BackendDeviceType>
  GetDefaultDeviceType() const override;
  void SetDefaultDeviceType(int8_t type) override;
  int64_t GetDefaultDeviceOrdinal() const override { return 0; }
  void SetDefaultDeviceOrdinal(int64_t ordinal) override;
  at::DeviceType EagerFallbackDeviceType() const override { return at::kCPU; }
  std::vector<torch::lazy::BackendDevice> GetBackendDevices() const override;
  torch::lazy::BackendDevice
  GetBackendDevice(c10::Device device) const override;
  std::string CreateMetricReport() const override;
  std::string GetComputationBackendText(
      const torch::lazy::ComputationPtr computation) const override;
};

} // namespace torch_ltc

#endif // TORCH_LTC_DEVICE_BACKEND_H
