//===- checked_program.cpp - The first op with a NaN ----------------------===//

#include "programs/program.h"

#include <ATen/Functions.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <stdexcept>

using namespace torch_ltc;

namespace {

enum class Defect { None, Infinite, NaN };

Defect defectOf(const at::Tensor &tensor) {
  if (!tensor.defined() || tensor.numel() == 0 ||
      at::isIntegralType(tensor.scalar_type(), /*includeBool=*/true))
    return Defect::None;
  if (at::isnan(tensor).any().item<bool>())
    return Defect::NaN;
  return at::isinf(tensor).any().item<bool>() ? Defect::Infinite : Defect::None;
}

Defect defectOf(const std::vector<at::Tensor> &tensors) {
  Defect worst = Defect::None;
  for (const at::Tensor &tensor : tensors)
    worst = std::max(worst, defectOf(tensor));
  return worst;
}

std::string describe(const GraphSnapshot &graph, size_t position,
                     Defect defect) {
  const SnapshotNode &node = graph.nodes[position];
  std::string text = defect == Defect::NaN ? "The first NaN" : "The first Inf";
  if (!node.record) {
    std::string name = graph.parameters[node.parameter].name;
    return text + " was already in input " + std::to_string(node.parameter) +
           (name.empty() ? "" : " '" + name + "'") + " of the step";
  }
  std::string module = modulePathText(node.modulePath);
  return text + " was made by " + node.record->name +
         (module.empty() ? "" : " in module " + module) +
         messageSuffix(node.location) + ": " + nodeText(graph, position) +
         (node.location ? "" : "; option source_info shows the Python line");
}

} // namespace

ProgramWithChecks::ProgramWithChecks(ProgramPtr program,
                                     GraphSnapshotPtr snapshot)
    : inner(std::move(program)), graph(std::move(snapshot)) {
  name = inner->name;
  outputs = inner->outputs;
  numOps = inner->numOps;
  numDonated = inner->numDonated;
}

void CheckedProgram::run(c10::ArrayRef<void *> parameters,
                         c10::ArrayRef<DynamicScalar> scalars,
                         c10::ArrayRef<void *> outputPointers,
                         const RunConditions &conditions) {
  inner->run(parameters, scalars, outputPointers, conditions);
  at::AutoDispatchBelowAutograd noAutograd;
  Defect worst = Defect::None;
  for (size_t i = 0; i < outputPointers.size(); ++i) {
    const torch::lazy::Shape &shape = graph->shape(graph->results[i]);
    if (shape.scalar_type() != c10::ScalarType::Undefined)
      worst = std::max(worst, defectOf(tensorAt(outputPointers[i], shape)));
  }
  if (worst == Defect::None)
    return;
  std::string found;
  interpretGraph(*graph, parameters, scalars,
                 [&](size_t position, const std::vector<at::Tensor> &results) {
                   if (defectOf(results) < worst)
                     return true;
                   found = describe(*graph, position, worst);
                   return false;
                 });
  // torch's own kernels may round differently and stay finite.
  throw RunError(found.empty()
                     ? "A result has a NaN or an Inf that PyTorch's CPU "
                       "kernels don't produce for the same inputs"
                     : found,
                 /*parametersIntact=*/true); // because nothing was donated
}
