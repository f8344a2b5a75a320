//===- lockstep_program.cpp - The op that differs from eager --------------===//
//
// After each run the graph is evaluated op by op with torch's CPU kernels, and
// the results are compared. If one differs, the graph is compiled again with
// every op's results as outputs, and each op is run eagerly on the values that
// the compiled program computed for its operands. So an error is attributed to
// the op that causes it, not to those that propagate it.
//
//===----------------------------------------------------------------------===//

#include "config/config.h"
#include "programs/program.h"

#include <ATen/Functions.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <cstdlib>
#include <sstream>
#include <stdexcept>

using namespace torch_ltc;

namespace {

bool isDefined(const torch::lazy::Shape &shape) {
  return shape.scalar_type() != c10::ScalarType::Undefined;
}

/// The largest difference that rounding explains, relative to the largest
/// element.
double toleranceOf(c10::ScalarType type) {
  std::string given = config().lockstep_tolerance.get();
  if (!given.empty())
    return std::strtod(given.c_str(), nullptr);
  switch (type) {
  case c10::ScalarType::Double:
    return 1e-9;
  case c10::ScalarType::Float:
    return 1e-3;
  case c10::ScalarType::Half:
    return 1e-2;
  case c10::ScalarType::BFloat16:
    return 5e-2;
  default:
    return 0;
  }
}

/// Describes the difference between the tensors; "" if they agree.
std::string differenceText(const at::Tensor &actual,
                           const at::Tensor &expected) {
  // Doesn't compare statistics that one side leaves empty or undefined; see
  // ResultMemory::fill.
  if (!actual.defined() || !expected.defined() || expected.numel() == 0 ||
      actual.numel() == 0)
    return "";
  at::Tensor a = actual.to(at::kDouble), b = expected.to(at::kDouble);
  at::Tensor unequal =
      a.ne(b).logical_and(a.isnan().logical_and(b.isnan()).logical_not());
  if (!unequal.any().item<bool>())
    return "";
  at::Tensor difference = at::sub(a, b).abs();
  at::Tensor finite = b.where(b.isfinite(), at::zeros_like(b));
  double scale = finite.abs().max().item<double>();
  double tolerance = toleranceOf(expected.scalar_type()) * scale;
  // A NaN or an Inf on only one side isn't rounding.
  at::Tensor wrong = unequal.logical_and(difference.le(tolerance)
                                             .logical_and(difference.isfinite())
                                             .logical_not());
  int64_t count = wrong.sum().item<int64_t>();
  if (count == 0)
    return "";
  int64_t first = wrong.reshape({-1}).to(at::kByte).argmax().item<int64_t>();
  std::ostringstream text;
  text << count << " of " << wrong.numel() << " elements differ, element "
       << first << " is " << a.reshape({-1})[first].item<double>()
       << " instead of " << b.reshape({-1})[first].item<double>();
  return text.str();
}

/// A copy of the graph that returns the results of all its ops.
GraphSnapshot withAllResults(const GraphSnapshot &graph) {
  GraphSnapshot all = graph;
  all.name = "lockstep-" + graph.name;
  all.results.clear();
  for (uint32_t i = 0; i < graph.nodes.size(); ++i)
    for (uint32_t k = 0;
         graph.nodes[i].record && k < graph.nodes[i].shapes.size(); ++k)
      if (isDefined(graph.nodes[i].shapes[k]))
        all.results.push_back({i, k});
  for (SnapshotParameter &parameter : all.parameters)
    parameter.donatable = false;
  return all;
}

std::string describe(const GraphSnapshot &graph, uint32_t position) {
  const SnapshotNode &node = graph.nodes[position];
  if (!node.record)
    return "input " + std::to_string(node.parameter);
  std::string module = modulePathText(node.modulePath);
  return node.record->name + (module.empty() ? "" : " in module " + module) +
         messageSuffix(node.location) + ", " + nodeText(graph, position);
}

} // namespace

LockstepProgram::LockstepProgram(ProgramPtr program, GraphSnapshotPtr snapshot,
                                 Compile compileGraph)
    : ProgramWithChecks(std::move(program), std::move(snapshot)),
      compile(std::move(compileGraph)) {}

std::string LockstepProgram::findOp(c10::ArrayRef<void *> parameters,
                                    c10::ArrayRef<DynamicScalar> scalars,
                                    const RunConditions &conditions) {
  GraphSnapshot all = withAllResults(*graph);
  ProgramPtr program = compile(all);
  std::vector<std::vector<at::Tensor>> values(all.nodes.size());
  std::vector<void *> pointers;
  for (size_t i = 0; i < all.nodes.size(); ++i) {
    const SnapshotNode &node = all.nodes[i];
    if (!node.record)
      values[i].push_back(tensorAt(parameters[node.parameter], node.shapes[0]));
    else
      for (const torch::lazy::Shape &shape : node.shapes)
        values[i].push_back(isDefined(shape)
                                ? at::empty(shape.sizes(), hostOptions(shape))
                                : at::Tensor());
  }
  for (const ResultRef &ref : all.results)
    pointers.push_back(values[ref.position][ref.index].data_ptr());
  program->run(parameters, scalars, pointers, conditions);
  for (uint32_t i = 0; i < all.nodes.size(); ++i) {
    if (!all.nodes[i].record)
      continue;
    std::vector<at::Tensor> expected = interpretNode(all, i, values, scalars);
    for (size_t k = 0; k < expected.size() && k < values[i].size(); ++k) {
      std::string difference = differenceText(values[i][k], expected[k]);
      if (!difference.empty())
        return "The first op that differs from eager PyTorch is " +
               describe(all, i) + ": " + difference;
    }
  }
  return "";
}

void LockstepProgram::run(c10::ArrayRef<void *> parameters,
                          c10::ArrayRef<DynamicScalar> scalars,
                          c10::ArrayRef<void *> outputPointers,
                          const RunConditions &conditions) {
  inner->run(parameters, scalars, outputPointers, conditions);
  at::AutoDispatchBelowAutograd noAutograd;
  std::vector<std::vector<at::Tensor>> values =
      interpretGraph(*graph, parameters, scalars);
  for (size_t i = 0; i < outputPointers.size(); ++i) {
    ResultRef ref = graph->results[i];
    const torch::lazy::Shape &shape = graph->shape(ref);
    if (!isDefined(shape))
      continue;
    std::string difference = differenceText(tensorAt(outputPointers[i], shape),
                                            values[ref.position][ref.index]);
    if (difference.empty())
      continue;
    std::string found = findOp(parameters, scalars, conditions);
    if (found.empty())
      found = "Result " + std::to_string(i) + " of a step, made by " +
              describe(*graph, ref.position) +
              ", differs from eager PyTorch (" + difference +
              "), but no op does when all results are stored: either the "
              "rounding of many ops adds up, or ops are fused incorrectly";
    throw std::runtime_error(found);
  }
}
