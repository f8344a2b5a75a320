//===- ltc-lsp-server.cpp - The project's dialects in editors -------------===//
//
// MLIR's language server with the project's dialects. An editor that uses the
// server for .mlir files shows types, definitions, uses and errors of dumped
// programs.
//
//===----------------------------------------------------------------------===//

#include "Registration.h"

#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::torch_ltc::registerToolDialects(registry);
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
