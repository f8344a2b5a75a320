//===- VerifyBackendContract.cpp - The rules that lowerings rely on -------===//
//
// The rules BC1 to BC6 are those of docs/backend_contract.md.
//
//===----------------------------------------------------------------------===//

#include "torch_ltc/Dialect/Torch/AtenOp.h"
#include "torch_ltc/Dialect/Torch/TorchDialect.h"
#include "torch_ltc/Dialect/Torch/TorchOps.h"
#include "torch_ltc/Support/UserLocation.h"
#include "torch_ltc/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringSet.h"

namespace mlir::torch_ltc {
#define GEN_PASS_DEF_VERIFYBACKENDCONTRACTPASS
#include "torch_ltc/Transforms/Passes.h.inc"
} // namespace mlir::torch_ltc

using namespace mlir;
using namespace mlir::torch_ltc;
using namespace mlir::torch_ltc::torch;

/// Returns the op's name; for `torch.operator "torch.aten.foo"`,
/// "torch.aten.foo".
static StringRef userVisibleName(Operation *op) {
  if (auto foreign = dyn_cast<OperatorOp>(op))
    return foreign.getName();
  return op->getName().getStringRef();
}

static bool isConstant(Value value) {
  return matchPattern(value, m_Constant());
}

/// Whether operand `position` of the op `name` is a list whose elements may be
/// dynamic scalars.
static bool mayVary(StringRef name, unsigned position) {
  name.consume_front("torch.");
#define VARYING_LIST(op, number)                                               \
  if (position == number && name == op)                                        \
    return true;
#include "torch_ltc/Dialect/Torch/VaryingLists.inc"
#undef VARYING_LIST
  return false;
}

namespace {
class ContractVerifier {
public:
  ContractVerifier(const llvm::StringSet<> &legalOps, bool takesHostCalls,
                   bool allowDynamicSizes)
      : legalOps(legalOps), takesHostCalls(takesHostCalls),
        allowDynamicSizes(allowDynamicSizes) {}

  LogicalResult verify(ModuleOp module) {
    unsigned publicFunctions = 0;
    for (Operation &op : module.getBody()->getOperations()) {
      auto function = dyn_cast<func::FuncOp>(op);
      if (!function) {
        violated(&op, 5) << "only functions are allowed in the module";
        continue;
      }
      publicFunctions += function.isPublic();
      verifyFunction(function);
    }
    if (publicFunctions != 1)
      violated(module, 5) << "the module must have one public function, has "
                          << publicFunctions;
    return success(!failed);
  }

private:
  /// Emits the start of an error: "backend contract, rule BC4: 'torch.aten.foo'
  /// (train.py:12): ".
  InFlightDiagnostic violated(Operation *op, int rule) {
    failed = true;
    return op->emitError() << "backend contract, rule BC" << rule << ": '"
                           << userVisibleName(op) << "'"
                           << userLocationSuffix(op->getLoc()) << ": ";
  }

  void verifyFunction(func::FuncOp function);
  void verifyOp(Operation *op);
  void verifyType(Operation *op, Type type, const Twine &what);
  void verifyTensor(Operation *op, ValueTensorType type, const Twine &what);
  void verifyOperand(Operation *op, OpOperand &operand);
  void verifyList(Operation *op, OpOperand &operand);

  const llvm::StringSet<> &legalOps;
  bool takesHostCalls, allowDynamicSizes;
  bool failed = false;
};
} // namespace

void ContractVerifier::verifyFunction(func::FuncOp function) {
  if (!function.getBody().hasOneBlock()) {
    violated(function, 5) << "a program must be one block without control flow";
    return;
  }
  for (auto [index, type] : llvm::enumerate(function.getArgumentTypes())) {
    if (!isTensorType(type) && !isIntType(type) && !isFloatType(type))
      violated(function, 5)
          << "parameter " << index
          << " must be a tensor, an int or a float, is " << type;
    verifyType(function, type, "parameter " + Twine(index));
  }
  for (Type type : function.getResultTypes())
    if (!isTensorType(type))
      violated(function, 5) << "results must be tensors, one is " << type;
  for (Operation &op : function.getBody().front())
    verifyOp(&op);
}

void ContractVerifier::verifyOp(Operation *op) {
  if (isa<func::ReturnOp>(op))
    return;
  StringRef name = userVisibleName(op);
  StringRef shortName = name;
  shortName.consume_front("torch.");
  if (isa<TorchDialect>(op->getDialect()) &&
      shortName.split('.').second.split('.').first.ends_with("_")) {
    violated(op, 1) << "writes into its operand; tensors are values here, so "
                       "the op must be functionalized";
    return;
  }
  bool isPrimitive =
      isa<PrimListConstructOp, PrimNumToTensorScalarOp, ConstantNoneOp,
          ConstantIntOp, ConstantFloatOp, ConstantBoolOp, ConstantStrOp,
          ConstantDeviceOp, ValueTensorLiteralOp>(op);
  // Sizes, and numbers that are computed from sizes.
  bool isSize =
      isa<SymbolicIntOp, BindSymbolicShapeOp, AtenSizeIntOp, AtenAddIntOp,
          AtenMulIntOp, AtenFloordivIntOp, AtenFloatScalarOp, AtenDivFloatOp>(
          op);
  if (isSize && allowDynamicSizes)
    isPrimitive = true;
  // PyTorch's kernels compute all ops of complex numbers, unless the target
  // lists the ops that it lowers.
  bool isHostCall = takesHostCalls && hasComplexTensor(op);
  if (!isPrimitive && !isHostCall && !legalOps.contains(shortName)) {
    violated(op, 4) << "the target cannot lower this op, and no decomposition "
                       "replaced it (docs/adding_an_op.md)";
    return;
  }
  for (OpOperand &operand : op->getOpOperands())
    if (!isa<PrimListConstructOp>(op))
      verifyOperand(op, operand);
  for (Value result : op->getResults())
    if (isTensorType(result.getType()))
      verifyType(op, result.getType(),
                 "result " + Twine(cast<OpResult>(result).getResultNumber()));
}

void ContractVerifier::verifyType(Operation *op, Type type, const Twine &what) {
  if (auto tensor = dyn_cast<ValueTensorType>(type))
    verifyTensor(op, tensor, what);
}

void ContractVerifier::verifyTensor(Operation *op, ValueTensorType type,
                                    const Twine &what) {
  if (!type.getHasSizes())
    violated(op, 2) << what << " has an unknown rank";
  else if (!allowDynamicSizes &&
           llvm::any_of(type.getSizes(), ShapedType::isDynamic))
    violated(op, 2) << what << " has a size that isn't known: " << Type(type);
  if (!type.getDtype())
    violated(op, 3) << what << " has an unknown dtype";
}

void ContractVerifier::verifyOperand(Operation *op, OpOperand &operand) {
  Type type = operand.get().getType();
  if (isa<ListType>(type))
    return verifyList(op, operand);
  bool mustBeConstant = isa<BoolType, StringType, DeviceType, OptionalType,
                            GeneratorType, NumberType>(type);
  if (mustBeConstant && !isConstant(operand.get()))
    violated(op, 6) << describeArgument(operand) << " is a value of type "
                    << type << " that isn't a constant of the program";
}

void ContractVerifier::verifyList(Operation *op, OpOperand &operand) {
  auto list = operand.get().getDefiningOp<PrimListConstructOp>();
  if (!list) {
    violated(op, 6) << describeArgument(operand)
                    << " is a list that isn't constructed in the program";
    return;
  }
  bool mayBeInts = allowDynamicSizes ||
                   mayVary(userVisibleName(op), operand.getOperandNumber());
  for (Value element : list.getElements())
    if (!isTensorType(element.getType()) && !isConstant(element) &&
        !(mayBeInts && isIntType(element.getType())))
      violated(op, 6) << describeArgument(operand)
                      << " is a list with an element that isn't a constant";
}

namespace {
struct VerifyBackendContractPass
    : torch_ltc::impl::VerifyBackendContractPassBase<
          VerifyBackendContractPass> {
  using VerifyBackendContractPassBase::VerifyBackendContractPassBase;

  LogicalResult initialize(MLIRContext *) override {
    legal = {
#define LOWERED_OP(name) name,
#include "torch_ltc/Dialect/Torch/LoweredOps.inc"
#undef LOWERED_OP
    };
    if (!targetOps.empty())
      legal.clear();
    for (const std::string &name :
         llvm::concat<std::string>(legalOps, targetOps))
      legal.insert(name);
    return success();
  }

  void runOnOperation() override {
    ContractVerifier verifier(legal, /*takesHostCalls=*/targetOps.empty(),
                              allowDynamicSizes);
    if (failed(verifier.verify(getOperation())))
      signalPassFailure();
    markAllAnalysesPreserved();
  }

  llvm::StringSet<> legal;
};
} // namespace
