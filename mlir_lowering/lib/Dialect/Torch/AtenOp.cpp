//===- AtenOp.cpp - The model of the op table's ops -----------------------===//

#include "torch_ltc/Dialect/Torch/AtenOp.h"
#include "torch_ltc/Dialect/Torch/TorchDialect.h"

#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::torch_ltc::torch;

namespace {
struct NoEffects : MemoryEffectOpInterface::FallbackModel<NoEffects> {
  void
  getEffects(Operation *,
             SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
                 &) const {}
};
struct Speculatable : ConditionallySpeculatable::FallbackModel<Speculatable> {
  Speculation::Speculatability getSpeculatability(Operation *) const {
    return Speculation::Speculatable;
  }
};

/// Gives each of several results a name in the text, as the code that ODS
/// generates does.
struct NamedResults : OpAsmOpInterface::ExternalModel<NamedResults, OpState> {
  void getAsmResultNames(Operation *op, OpAsmSetValueNameFn setName) const {
    for (OpResult result : op->getResults())
      setName(result, ("result" + Twine(result.getResultNumber())).str());
  }
};

mlir::detail::InterfaceMap interfacesOf(size_t results) {
  mlir::detail::InterfaceMap interfaces;
  interfaces.insertModels<NoEffects, Speculatable>();
  if (results > 1)
    interfaces.insertModels<NamedResults>();
  return interfaces;
}

/// Makes OpState::printOpName accessible, which is protected.
struct NamePrinter : OpState {
  using OpState::printOpName;
};

/// Implements each op of the table, as MLIR's
/// RegisteredOperationName::Model<Op> does for one class.
class AtenOpModel final : public OperationName::Impl {
public:
  AtenOpModel(StringRef name, Dialect *dialect, TypeID id,
              AtenValueKinds operands, AtenValueKinds results,
              AtenOpHooks hooks)
      : Impl(name, dialect, id, interfacesOf(results.size())),
        operands(operands), results(results), hooks(hooks) {}

  LogicalResult foldHook(Operation *op, ArrayRef<Attribute>,
                         SmallVectorImpl<OpFoldResult> &folded) override {
    OpFoldResult value = hooks.fold ? hooks.fold(op) : OpFoldResult();
    if (!value)
      return failure();
    folded.push_back(value);
    return success();
  }
  void getCanonicalizationPatterns(RewritePatternSet &patterns,
                                   MLIRContext *context) override {
    if (hooks.canonicalize)
      hooks.canonicalize(patterns, context);
  }
  bool hasTrait(TypeID id) override {
    if (id == TypeID::get<OpTrait::OneResult>())
      return results.size() == 1;
    return op_definition_impl::hasTrait<
        OpTrait::ZeroRegions, OpTrait::ZeroSuccessors,
        OpTrait::AlwaysSpeculatableImplTrait, ConditionallySpeculatable::Trait,
        MemoryEffectOpInterface::Trait>(id);
  }
  OperationName::ParseAssemblyFn getParseAssemblyFn() override { return parse; }
  void printAssembly(Operation *op, OpAsmPrinter &printer,
                     StringRef defaultDialect) override;
  LogicalResult verifyInvariants(Operation *op) override;
  LogicalResult verifyRegionInvariants(Operation *) override {
    return success();
  }

  // The ops have no inherent attributes and no properties.
  void populateDefaultAttrs(const OperationName &, NamedAttrList &) override {}
  std::optional<Attribute> getInherentAttr(Operation *op,
                                           StringRef name) override {
    return op->getDiscardableAttr(name);
  }
  void setInherentAttr(Operation *op, StringAttr name,
                       Attribute value) override {
    op->setDiscardableAttr(name, value);
  }
  void populateInherentAttrs(Operation *, NamedAttrList &) override {}
  LogicalResult
  verifyInherentAttrs(OperationName, NamedAttrList &,
                      function_ref<InFlightDiagnostic()>) override {
    return success();
  }
  int getOpPropertyByteSize() override { return 0; }
  void initProperties(OperationName, OpaqueProperties,
                      OpaqueProperties) override {}
  void deleteProperties(OpaqueProperties) override {}
  void populateDefaultProperties(OperationName, OpaqueProperties) override {}
  LogicalResult
  setPropertiesFromAttr(OperationName, OpaqueProperties, Attribute,
                        function_ref<InFlightDiagnostic()> error) override {
    error() << "this operation does not support properties";
    return failure();
  }
  Attribute getPropertiesAsAttr(Operation *) override { return {}; }
  void copyProperties(OpaqueProperties, OpaqueProperties) override {}
  bool compareProperties(OpaqueProperties, OpaqueProperties) override {
    return true;
  }
  llvm::hash_code hashProperties(OpaqueProperties) override { return {}; }

private:
  static ParseResult parse(OpAsmParser &parser, OperationState &result);

  SmallVector<const AtenValueKind *> operands, results;
  AtenOpHooks hooks;
};
} // namespace

/// Parses `operands attr-dict : types of operands -> types of results`.
ParseResult AtenOpModel::parse(OpAsmParser &parser, OperationState &result) {
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  SmallVector<Type> types;
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseOperandList(operands) ||
      parser.parseOptionalAttrDict(result.attributes) || parser.parseColon() ||
      parser.parseTypeList(types) || parser.parseArrow() ||
      parser.parseTypeList(result.types))
    return failure();
  return parser.resolveOperands(operands, types, location, result.operands);
}

void AtenOpModel::printAssembly(Operation *op, OpAsmPrinter &printer,
                                StringRef defaultDialect) {
  NamePrinter::printOpName(op, printer, defaultDialect);
  printer << ' ' << op->getOperands();
  printer.printOptionalAttrDict(op->getAttrs());
  printer << " : " << op->getOperandTypes() << " -> " << op->getResultTypes();
}

static LogicalResult verifyTypes(Operation *op, TypeRange types,
                                 ArrayRef<const AtenValueKind *> kinds,
                                 StringRef what) {
  for (auto [index, type, kind] : llvm::enumerate(types, kinds))
    if (!kind->accepts(type) && !(kind->isOptional && isNoneType(type)))
      return op->emitOpError(what) << " #" << index << " must be "
                                   << (kind->isOptional ? "optional " : "")
                                   << kind->summary << ", but got " << type;
  return success();
}

/// Verifies the numbers of operands, results, regions and successors, with the
/// errors of the traits that ODS would use.
static LogicalResult verifyCounts(Operation *op, size_t operands,
                                  size_t results) {
  if (failed(OpTrait::impl::verifyZeroRegions(op)) ||
      failed(results == 1 ? OpTrait::impl::verifyOneResult(op)
                          : OpTrait::impl::verifyNResults(op, results)) ||
      failed(OpTrait::impl::verifyZeroSuccessors(op)))
    return failure();
  if (operands == 0)
    return OpTrait::impl::verifyZeroOperands(op);
  return operands == 1 ? OpTrait::impl::verifyOneOperand(op)
                       : OpTrait::impl::verifyNOperands(op, operands);
}

LogicalResult AtenOpModel::verifyInvariants(Operation *op) {
  if (failed(verifyCounts(op, operands.size(), results.size())) ||
      failed(verifyTypes(op, op->getOperandTypes(), operands, "operand")) ||
      failed(verifyTypes(op, op->getResultTypes(), results, "result")))
    return failure();
  return hooks.verify ? hooks.verify(op) : success();
}

OpFoldResult torch_ltc::torch::foldSameType(Value self, Value result) {
  bool isSame = cast<ValueTensorType>(self.getType()).isStatic() &&
                self.getType() == result.getType();
  return isSame ? self : Value();
}

std::string torch_ltc::torch::describeArgument(OpOperand &operand) {
  Operation *op = operand.getOwner();
  unsigned position = operand.getOperandNumber();
  SmallVector<StringRef> names;
  if (auto *dialect = dyn_cast_or_null<TorchDialect>(op->getDialect()))
    dialect->argumentNames.lookup(op->getName().getStringRef())
        .split(names, ' ');
  if (position < names.size() && !names[position].empty())
    return ("argument '" + names[position] + "'").str();
  return ("argument " + Twine(position)).str();
}

void torch_ltc::torch::registerAtenOp(TorchDialect &dialect, StringRef name,
                                      TypeID id, StringRef arguments,
                                      AtenValueKinds operands,
                                      AtenValueKinds results,
                                      AtenOpHooks hooks) {
  dialect.argumentNames[name] = arguments;
  RegisteredOperationName::insert(std::make_unique<AtenOpModel>(name, &dialect,
                                                                id, operands,
                                                                results, hooks),
                                  /*attrNames=*/{});
}
