//===- infer_shapes.cpp - Shapes and dtypes of an op's results ------------===//

#include "shape/infer_shapes.h"

#include "events/op_error.h"
#include "ir/trace_environment.h"
#include "shape/eager_check.h"
#include "shape/shape_inference.h"

using namespace torch_ltc;
using torch::lazy::Shape;

namespace {

torch::lazy::hash_t callHash(const OpCall &call) {
  HashState state(3);
  state.add(call.attributeHash);
  for (const Shape *operand : call.operands) {
    state.add(uint64_t(operand->scalar_type()) << 8 | uint64_t(operand->dim()));
    for (int64_t size : operand->sizes())
      state.add(uint64_t(size));
  }
  state.add(uint64_t(call.promoted));
  state.add(TraceEnvironment::current().hash());
  Hash128 hash = state.finish();
  return torch::lazy::hash_t(hash.high, hash.low);
}

ShapeCache &shapeCache() {
  static auto *cache = new ShapeCache(16384);
  return *cache;
}

void inferResults(const OpCall &call, ResultShapes &results) {
  if (inferClosedForm(call.record.shapeRule, call.record.dtypeRule,
                      call.record.handle->schema(), call.arguments, results))
    return;
  torch::lazy::hash_t key = callHash(call);
  if (shapeCache().find(key, results))
    return;
  inferWithMetaKernel(*call.record.handle, call.arguments, results);
  shapeCache().insert(key, results);
}

std::vector<Shape> shapesOf(c10::ArrayRef<ResultShape> results) {
  std::vector<Shape> shapes;
  shapes.reserve(results.size());
  for (const ResultShape &result : results)
    shapes.emplace_back(result.dtype, result.sizes);
  return shapes;
}

} // namespace

std::vector<Shape> torch_ltc::inferShapes(const OpCall &call) {
  c10::SmallVector<ResultShape, 3> results;
  try {
    inferResults(call, results);
    checkAgainstEager(call, results);
  } catch (const c10::Error &error) {
    rethrowWithOp(error, call.record.name);
  }
  return shapesOf(results);
}

std::vector<Shape> torch_ltc::inferShapesOnly(const OpCall &call) {
  c10::SmallVector<ResultShape, 3> results;
  inferResults(call, results);
  return shapesOf(results);
}
