//===- AdvancedIndex.cpp - Lists of index tensors -------------------------===//

#include "AdvancedIndex.h"

using namespace mlir;
using namespace mlir::torch_ltc;

/// The shape to which all `tensors` broadcast.
static SmallVector<int64_t> broadcastShapes(ArrayRef<Value> tensors) {
  SmallVector<int64_t> shape;
  for (Value tensor : tensors) {
    ArrayRef<int64_t> sizes = shapeOf(tensor);
    if (sizes.size() > shape.size())
      shape.insert(shape.begin(), sizes.size() - shape.size(), 1);
    size_t missing = shape.size() - sizes.size();
    for (auto [dim, size] : llvm::enumerate(sizes))
      if (size != 1)
        shape[missing + dim] = size;
  }
  return shape;
}

FailureOr<AdvancedIndex> AdvancedIndex::read(OpLowering &op, Value indices,
                                             ArrayRef<int64_t> tensorSizes) {
  AdvancedIndex index;
  index.tensorSizes = llvm::to_vector(tensorSizes);
  index.tensorOfDim.assign(tensorSizes.size(), -1);
  SmallVector<int64_t> indexedDims;
  for (auto [dim, tensor, dtype] :
       llvm::enumerate(op.tensorList(indices), op.tensorListDtypes(indices))) {
    if (!tensor)
      continue;
    if (isBool(dtype) || dtype.isUnsignedInteger())
      return op.fail("an index is a mask");
    index.tensorOfDim[dim] = static_cast<int>(index.tensors.size());
    int64_t size = tensorSizes[dim];
    index.tensors.push_back(op.checkBounds(tensor, -size, size));
    indexedDims.push_back(dim);
  }
  if (index.tensors.empty())
    return op.fail("no dimension is indexed");
  SmallVector<int64_t> broadcast = broadcastShapes(index.tensors);
  bool together = indexedDims.back() - indexedDims.front() + 1 ==
                  static_cast<int64_t>(indexedDims.size());
  int64_t front = together ? indexedDims.front() : 0;
  for (auto [dim, size] : llvm::enumerate(tensorSizes)) {
    if (static_cast<int64_t>(index.sizes.size()) == front)
      llvm::append_range(index.sizes, broadcast);
    bool indexed = index.tensorOfDim[dim] >= 0;
    index.placeOfDim.push_back(indexed ? -1 : index.sizes.size());
    if (!indexed)
      index.sizes.push_back(size);
  }
  // Append dimensions of size 1 to the index tensors, so that their own
  // dimensions align with those that replace the indexed ones in the result.
  size_t behind = index.sizes.size() - front - broadcast.size();
  for (Value &tensor : index.tensors) {
    SmallVector<int64_t> aligned(shapeOf(tensor));
    aligned.append(behind, 1);
    tensor = op.tensors.reshape(tensor, aligned);
  }
  return index;
}

SmallVector<Value> AdvancedIndex::locate(IndexBuilder &b, ValueRange position,
                                         ValueRange elements) const {
  SmallVector<Value> located;
  for (auto [dim, size] : llvm::enumerate(tensorSizes)) {
    int tensor = tensorOfDim[dim];
    located.push_back(tensor < 0 ? position[placeOfDim[dim]]
                                 : b.fromElement(elements[tensor], size));
  }
  return located;
}

Value torch_ltc::extractBroadcast(IndexBuilder &b, Value tensor,
                                  ValueRange position) {
  ArrayRef<int64_t> sizes = shapeOf(tensor);
  SmallVector<Value> indices;
  size_t missing = position.size() - sizes.size();
  for (auto [dim, size] : llvm::enumerate(sizes))
    indices.push_back(size == 1 ? b.constant(0) : position[missing + dim]);
  return b.extract(tensor, indices);
}
