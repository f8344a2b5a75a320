//===- BindBuffers.cpp - Kernel signatures with memrefs -------------------===//

#include "torch_ltc/Codegen/Passes.h"

namespace mlir::torch_ltc {
#define GEN_PASS_DEF_BINDBUFFERS
#include "torch_ltc/Codegen/Passes.h.inc"

namespace {

bool hasNoElements(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && llvm::is_contained(tensor.getShape(), 0);
}

/// The type of the argument for a value of `type`. LLVM 22 can't pass
/// memref<5x0xf32> (strides 0 and 1) as a bare pointer, so tensors without
/// elements, whose memory no kernel accesses, become memref<0xf32>.
MemRefType memrefOf(Type type) {
  if (hasNoElements(type))
    return MemRefType::get({0}, cast<RankedTensorType>(type).getElementType());
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return MemRefType::get(tensor.getShape(), tensor.getElementType());
  return MemRefType::get({}, type); // a scalar parameter
}

/// Writes the results to the memory of the arguments that follow the operands:
/// first to tensors in this memory, then to the memory itself. MLIR 22 replaces
/// an empty tensor by its destination. It checks whether another result that
/// was built in the same empty tensor is still read, but only if the
/// destination is a tensor.
void putInDestinations(OpBuilder &builder, func::ReturnOp terminator,
                       ArrayRef<BlockArgument> memory) {
  Location loc = terminator.getLoc();
  SmallVector<std::pair<Value, Value>> placed;
  for (auto [result, destination] :
       llvm::zip(terminator.getOperands(), memory)) {
    if (hasNoElements(result.getType()))
      continue;
    builder.setInsertionPointAfterValue(destination);
    Value tensor = bufferization::ToTensorOp::create(
        builder, loc, result.getType(), destination, /*restrict=*/true,
        /*writable=*/true);
    builder.setInsertionPoint(terminator);
    Value written = bufferization::MaterializeInDestinationOp::create(
                        builder, loc, result.getType(), result, tensor)
                        .getResult();
    placed.push_back({written, destination});
  }
  // Usually the tensor already lies in its destination, and nothing is copied.
  for (auto [written, destination] : placed)
    bufferization::MaterializeInDestinationOp::create(
        builder, loc, /*result=*/Type(), written, destination,
        /*restrict=*/true, /*writable=*/true);
}

/// Rewrites the signature of one kernel around its unchanged body.
void bindBuffers(func::FuncOp kernel) {
  OpBuilder builder(kernel.getContext());
  Location loc = kernel.getLoc();
  Block &entry = kernel.getBody().front();
  FunctionType type = kernel.getFunctionType();
  SmallVector<Type> inputs;
  for (Type t : llvm::concat<const Type>(type.getInputs(), type.getResults()))
    inputs.push_back(memrefOf(t));
  inputs.append(2, builder.getIndexType());

  builder.setInsertionPointToStart(&entry);
  unsigned operandCount = type.getNumInputs();
  for (unsigned i = 0; i < operandCount; ++i) {
    Type original = type.getInput(i);
    BlockArgument argument = entry.getArgument(i);
    argument.setType(inputs[i]);
    Value value;
    if (hasNoElements(original))
      value = tensor::EmptyOp::create(
          builder, loc, cast<RankedTensorType>(original).getShape(),
          cast<RankedTensorType>(original).getElementType());
    else if (isa<RankedTensorType>(original))
      value =
          bufferization::ToTensorOp::create(builder, loc, original, argument,
                                            /*restrict=*/true);
    else
      value = memref::LoadOp::create(builder, loc, argument);
    argument.replaceAllUsesExcept(value, value.getDefiningOp());
  }
  for (Type t : ArrayRef(inputs).drop_front(operandCount))
    entry.addArgument(t, loc);

  auto terminator = cast<func::ReturnOp>(entry.getTerminator());
  putInDestinations(builder, terminator,
                    entry.getArguments().slice(operandCount));
  terminator->setOperands({});
  kernel.setFunctionType(builder.getFunctionType(inputs, {}));
  // Declare that no arguments alias: callers never pass overlapping memory,
  // because only kernels that are lowered to loops update operands in place.
  for (auto [index, t] : llvm::enumerate(inputs))
    if (isa<MemRefType>(t))
      kernel.setArgAttr(index, "llvm.noalias", builder.getUnitAttr());
}

class BindBuffers : public impl::BindBuffersBase<BindBuffers> {
  void runOnOperation() override {
    auto isTensor = [](Type type) { return isa<RankedTensorType>(type); };
    for (auto kernel : getOperation().getOps<func::FuncOp>())
      if (!kernel.isDeclaration() &&
          llvm::any_of(kernel.getResultTypes(), isTensor))
        bindBuffers(kernel);
  }
};

} // namespace
} // namespace mlir::torch_ltc
