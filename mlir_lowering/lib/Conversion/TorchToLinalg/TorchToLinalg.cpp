//===- TorchToLinalg.cpp - The conversion pass ----------------------------===//

#include "torch_ltc/Conversion/TorchToLinalg/Passes.h"

#include "OpLowering.h"
#include "TorchConversion.h"

#include "torch_ltc/Dialect/Torch/TorchDialect.h"
#include "torch_ltc/Dialect/Torch/TorchOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/Passes.h"

namespace mlir::torch_ltc {
#define GEN_PASS_DEF_CONVERTTORCHTOLINALGPASS
#include "torch_ltc/Conversion/TorchToLinalg/Passes.h.inc"
} // namespace mlir::torch_ltc

using namespace mlir;
using namespace mlir::torch_ltc;

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// Converts a constant of the torch dialect to an arith.constant, for lowerings
/// that use its converted value. Other lowerings read the torch constant.
static Value materializeConstant(OpBuilder &builder, Type type,
                                 ValueRange inputs, Location loc) {
  if (inputs.size() != 1)
    return {};
  TypedAttr value;
  Operation *definition = inputs[0].getDefiningOp();
  if (auto constant = dyn_cast_or_null<torch::ConstantIntOp>(definition))
    value = builder.getI64IntegerAttr(constant.getValueAttr().getInt());
  else if (auto constant = dyn_cast_or_null<torch::ConstantFloatOp>(definition))
    value = constant.getValueAttr();
  else if (auto constant = dyn_cast_or_null<torch::ConstantBoolOp>(definition))
    value = constant.getValueAttr();
  if (!value || value.getType() != type)
    return UnrealizedConversionCastOp::create(builder, loc, type, inputs)
        .getResult(0);
  return arith::ConstantOp::create(builder, loc, value);
}

void torch_ltc::populateTorchToLinalgTypes(TypeConverter &converter) {
  converter.addConversion([](Type type) { return type; });
  converter.addConversion([](torch::ValueTensorType type) -> Type {
    if (!type.isStatic())
      return {};
    return storageTensorOf(type);
  });
  converter.addConversion([](torch::IntType type) -> Type {
    return IntegerType::get(type.getContext(), 64);
  });
  converter.addConversion([](torch::FloatType type) -> Type {
    return Float64Type::get(type.getContext());
  });
  converter.addConversion([](torch::BoolType type) -> Type {
    return IntegerType::get(type.getContext(), 1);
  });
  converter.addTargetMaterialization(materializeConstant);
  converter.addSourceMaterialization(
      [](OpBuilder &builder, Type type, ValueRange inputs, Location loc) {
        return UnrealizedConversionCastOp::create(builder, loc, type, inputs)
            .getResult(0);
      });
}

//===----------------------------------------------------------------------===//
// The pattern
//===----------------------------------------------------------------------===//

static const LoweringTable &loweringTable() {
  static const LoweringTable table = [] {
    LoweringTable table;
    populateElementwiseLowerings(table);
    populateReductionLowerings(table);
    populateScanLowerings(table);
    populateSortLowerings(table);
    populateDataMovementLowerings(table);
    populateSliceLowerings(table);
    populateStridedLowerings(table);
    populateLinearLowerings(table);
    populateAttentionLowerings(table);
    populateConvolutionLowerings(table);
    populatePoolingLowerings(table);
    populateIndexingLowerings(table);
    populateScatterLowerings(table);
    populateEmbeddingLowerings(table);
    populateConstructorLowerings(table);
    populateComplexLowerings(table);
    populateHostLowerings(table);
    return table;
  }();
  return table;
}

/// Whether all numbers of a list are constants, or, if `mayBeParameters`, ints
/// that are dynamic scalars.
static bool isKnownList(torch::PrimListConstructOp list, bool mayBeParameters) {
  return llvm::all_of(list.getElements(), [&](Value element) {
    Type type = element.getType();
    bool isTensor =
        isa<torch::ValueTensorType, torch::OptionalType, torch::NoneType>(type);
    return isTensor || matchPattern(element, m_Constant()) ||
           (mayBeParameters && isa<torch::IntType>(type));
  });
}

/// An operand that must be a constant but isn't; null if there is none.
static OpOperand *findUnknown(Operation *op,
                              const LoweringTable::Entry &entry) {
  for (OpOperand &operand : op->getOpOperands()) {
    Value value = operand.get();
    bool mayBeParameter =
        llvm::is_contained(entry.dynamicScalars, operand.getOperandNumber());
    if (isa<torch::ListType>(value.getType())) {
      auto list = value.getDefiningOp<torch::PrimListConstructOp>();
      if (!list || !isKnownList(list, mayBeParameter))
        return &operand;
      continue;
    }
    bool isNumber = torch::isScalarType(value.getType()) ||
                    isa<torch::BoolType>(value.getType());
    if (isNumber && !matchPattern(value, m_Constant()) && !mayBeParameter)
      return &operand;
  }
  return nullptr;
}

namespace {
struct TorchOpPattern : ConversionPattern {
  TorchOpPattern(const TypeConverter &converter, MLIRContext *context)
      : ConversionPattern(converter, MatchAnyOpTypeTag(), /*benefit=*/1,
                          context) {}

  LogicalResult
  matchAndRewrite(Operation *op, ArrayRef<Value> operands,
                  ConversionPatternRewriter &rewriter) const override {
    StringRef name = op->getName().getStringRef();
    if (auto foreign = dyn_cast<torch::OperatorOp>(op))
      name = foreign.getName();
    if (!isa<torch::TorchDialect>(op->getDialect()) || isLookedThrough(op))
      return failure();
    name.consume_front("torch.");
    OpLowering lowering(op, name, operands, rewriter);
    if (torch::hasComplexTensor(op))
      return lowerComplex(lowering);
    const LoweringTable::Entry *entry = loweringTable().find(name);
    if (!entry)
      return lowering.fail(
          "there is none for this op (backend contract, rule BC4)");
    if (OpOperand *operand = findUnknown(op, *entry))
      return lowering.fail(torch::describeArgument(*operand) + " (" +
                           describe(operand->get().getType()) +
                           ") isn't a constant of the program (backend "
                           "contract, rule BC6)");
    auto isUnknown = [](Type type) {
      auto tensor = dyn_cast<torch::ValueTensorType>(type);
      return tensor && !tensor.isStatic();
    };
    if (llvm::any_of(op->getOperandTypes(), isUnknown) ||
        llvm::any_of(op->getResultTypes(), isUnknown))
      return lowering.fail("it has a tensor whose sizes or dtype aren't known "
                           "(backend contract, rules BC2 and BC3)");
    return entry->lower(lowering);
  }

  static std::string describe(Type type) {
    std::string text;
    llvm::raw_string_ostream(text) << type;
    return text;
  }
};
} // namespace

void torch_ltc::populateTorchToLinalgPatterns(RewritePatternSet &patterns,
                                              const TypeConverter &converter) {
  patterns.add<TorchOpPattern>(converter, patterns.getContext());
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// The attribute of a parameter or a result whose dtype can't be derived from
/// its converted type; "" if it needs none.
static StringRef dtypeAttribute(Type type) {
  auto tensor = dyn_cast<torch::ValueTensorType>(type);
  if (torch::isComplexTensor(type))
    return kComplexAttr;
  bool isUnsigned =
      tensor && tensor.getDtype() && tensor.getDtype().isUnsignedInteger();
  return isUnsigned ? kUnsignedAttr : "";
}

static void markDtypes(func::FuncOp function) {
  UnitAttr unit = UnitAttr::get(function.getContext());
  for (auto [index, type] : llvm::enumerate(function.getArgumentTypes()))
    if (StringRef name = dtypeAttribute(type); !name.empty())
      function.setArgAttr(index, name, unit);
  for (auto [index, type] : llvm::enumerate(function.getResultTypes()))
    if (StringRef name = dtypeAttribute(type); !name.empty())
      function.setResultAttr(index, name, unit);
}

namespace {
struct ConvertTorchToLinalgPass
    : torch_ltc::impl::ConvertTorchToLinalgPassBase<ConvertTorchToLinalgPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    for (auto function : module.getOps<func::FuncOp>())
      markDtypes(function);
    TypeConverter converter;
    populateTorchToLinalgTypes(converter);
    RewritePatternSet patterns(&getContext());
    populateTorchToLinalgPatterns(patterns, converter);
    auto isLegal = [](Operation *) { return true; };
    if (failed(convertTorchModule(module, converter, std::move(patterns),
                                  isLegal)))
      signalPassFailure();
  }
};
} // namespace

void torch_ltc::buildTorchToLinalgPipeline(OpPassManager &passes,
                                           bool portable) {
  passes.addPass(createConvertTorchToLinalgPass());
  if (portable)
    passes.addNestedPass<func::FuncOp>(createExpandLibraryCallsPass());
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
}
