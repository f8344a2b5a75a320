//===- ltc-reduce.cpp - Test case reducer ---------------------------------===//
//
// MLIR's reducer with the project's dialects and a pass for programs of one
// function. The user's script gets a file as its argument and exits with 1 if
// the problem still occurs:
//
//   ltc-reduce torch.mlir --ltc-reduce-program=test=./fails.sh
//
//===----------------------------------------------------------------------===//

#include "ReduceProgram.h"
#include "Registration.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Tools/mlir-reduce/MlirReduceMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::torch_ltc::registerToolDialects(registry);
  mlir::torch_ltc::registerToolPasses();
  mlir::torch_ltc::registerReduceProgramPass();
  mlir::MLIRContext context(registry);
  return mlir::failed(mlir::mlirReduceMain(argc, argv, context));
}
