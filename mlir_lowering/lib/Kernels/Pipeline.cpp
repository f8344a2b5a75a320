//===- Pipeline.cpp - Order of the kernels stage's passes -----------------===//

#include "torch_ltc/Kernels/Passes.h"

#include "mlir/Transforms/Passes.h"

using namespace mlir;

void mlir::torch_ltc::buildKernelsPipeline(OpPassManager &manager) {
  manager.addPass(createSelectLibraryCalls());
  // Eliminate common subexpressions before grouping: two equal ops would become
  // two members of a kernel. Canonicalization erases the transposes and fills
  // that library calls have left without users.
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  manager.addPass(createCombineProducts());
  manager.addPass(createCSEPass()); // joins of the same matrices
  manager.addPass(createNormalizeOps());
  manager.addPass(createJoinInsertions());
  manager.addPass(createSplitReductions());
  // After duplication every copy has one user, whose group it joins.
  manager.addPass(createDuplicateProducers());
  manager.addPass(createGroupOps());
  manager.addPass(createRecomputeValues());
  manager.addPass(createGroupOps()); // again if groups were dissolved
  // No later pass may remove a `begin` or `finish`: memory is in use from one
  // to the other.
  manager.addPass(createOverlapCollectives());
  manager.addPass(createOutlineKernels());
  manager.addPass(createDeduplicateKernels());
  manager.addPass(createScheduleKernels());
  manager.addPass(createPlanBuffers());
}

void mlir::torch_ltc::buildReferencePipeline(OpPassManager &manager) {
  manager.addPass(createGroupProgram());
  manager.addPass(createOutlineKernels());
  manager.addPass(createScheduleKernels());
  manager.addPass(createPlanBuffers());
}
