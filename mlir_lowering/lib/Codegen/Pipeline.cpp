//===- Pipeline.cpp - Order of the passes from a kernel to LLVM -----------===//

#include "torch_ltc/Codegen/Passes.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Bufferization/Pipelines/Passes.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/Tensor/Transforms/Passes.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

/// Adds the passes for kernels that aren't lowered to loops directly: scatters
/// and insertions.
static void addBufferization(OpPassManager &manager) {
  manager.addPass(torch_ltc::createBindBuffers());
  manager.addPass(bufferization::createEmptyTensorEliminationPass());
  manager.addPass(bufferization::createEmptyTensorToAllocTensorPass());
  manager.addPass(bufferization::createOneShotBufferizePass());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  // Allocate once before the loops instead of in each iteration.
  manager.addNestedPass<func::FuncOp>(
      bufferization::createBufferHoistingPass());
  manager.addNestedPass<func::FuncOp>(
      bufferization::createBufferLoopHoistingPass());
  bufferization::buildBufferDeallocationPipeline(manager);
  manager.addPass(createConvertBufferizationToMemRefPass());
  manager.addPass(torch_ltc::createLowerCopies());
  manager.addPass(createConvertLinalgToLoopsPass());
}

static void addConversionToLlvm(OpPassManager &manager) {
  manager.addPass(torch_ltc::createExpandMath());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  // Convert the offsets of slices to arithmetic, including affine.apply.
  manager.addPass(memref::createFoldMemRefAliasOpsPass());
  manager.addPass(memref::createExpandStridedMetadataPass());
  manager.addPass(createLowerAffinePass());
  manager.addPass(createSCFToControlFlowPass());
  manager.addPass(createConvertVectorToLLVMPass());
  manager.addPass(createConvertMathToLLVMPass());
  manager.addPass(createConvertMathToLibmPass());
  manager.addPass(createFinalizeMemRefToLLVMConversionPass());
  ConvertFuncToLLVMPassOptions function;
  function.useBarePtrCallConv = true;
  manager.addPass(createConvertFuncToLLVMPass(function));
  manager.addPass(createArithToLLVMConversionPass());
  manager.addPass(createConvertIndexToLLVMPass());
  manager.addPass(createConvertControlFlowToLLVMPass());
  manager.addPass(createUBToLLVMConversionPass());
  manager.addPass(createReconcileUnrealizedCastsPass());
}

void mlir::torch_ltc::buildLoopsPipeline(OpPassManager &manager) {
  manager.addPass(createLowerToLoops());
  addConversionToLlvm(manager);
}

void mlir::torch_ltc::buildBufferizationPipeline(OpPassManager &manager) {
  addBufferization(manager);
  addConversionToLlvm(manager);
}
