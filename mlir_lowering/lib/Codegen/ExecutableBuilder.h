//===- ExecutableBuilder.h - Kernels stage to protobuf ----------*- C++ -*-===//

#ifndef TORCH_LTC_LIB_CODEGEN_EXECUTABLEBUILDER_H
#define TORCH_LTC_LIB_CODEGEN_EXECUTABLEBUILDER_H

#include "torch_ltc/Dialect/Ltc/LtcDialect.h"
#include "torch_ltc/Kernels/BufferPlan.h"

#include "executable.pb.h"

namespace mlir::torch_ltc {

/// The protobuf messages of executables.
namespace runtime = ::torch_ltc::runtime;

/// Fills in the buffers, constants, parameters, outputs and commands of an
/// executable, but not the kernels' objects.
class ExecutableBuilder {
public:
  /// `kernelOfCall` maps each kernel call to the kernel's index in
  /// `Executable.kernels`.
  ExecutableBuilder(func::FuncOp program, const BufferPlan &plan,
                    const DenseMap<Operation *, unsigned> &kernelOfCall,
                    runtime::Executable &executable)
      : program(program), plan(plan), kernelOfCall(kernelOfCall),
        executable(executable), symbols(program->getParentOfType<ModuleOp>()) {}

  LogicalResult build();

  // Used to build commands (Commands.cpp).

  /// Adds a command for `op`. The command's name consists of the ATen ops that
  /// the command computes, if they are known, and `details`: sizes, or the kind
  /// of a collective.
  runtime::Command *addCommand(Operation *op, StringRef details = "");
  BufferPart partOf(Value value) const { return plan.parts.at(value); }
  SmallVector<CopiedPart> copiedParts(ltc::JoinOp join) const {
    return plan.getCopiedParts(join);
  }
  void setPart(runtime::BufferRef *reference, Value value);
  /// Sets the type of a tensor that PyTorch reads or writes. If it is complex,
  /// `type` has an additional last dim, the real and the imaginary part.
  LogicalResult setType(runtime::TensorType *message, Type type,
                        bool isUnsigned, bool isComplex, Location loc);
  static FailureOr<runtime::DType> getDType(Type type, Location loc,
                                            bool isUnsigned = false);
  func::FuncOp kernelOf(ltc::KernelCallOp call) const {
    return symbols.lookup<func::FuncOp>(call.getCallee());
  }
  unsigned indexOfKernel(ltc::KernelCallOp call) const {
    return kernelOfCall.at(call);
  }
  runtime::Executable &getExecutable() { return executable; }

private:
  LogicalResult addParameters();
  void addBuffers();
  LogicalResult addConstants();
  LogicalResult addCommands();
  LogicalResult addOutputs();

  func::FuncOp program;
  const BufferPlan &plan;
  const DenseMap<Operation *, unsigned> &kernelOfCall;
  runtime::Executable &executable;
  SymbolTable symbols;
};

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_LIB_CODEGEN_EXECUTABLEBUILDER_H
