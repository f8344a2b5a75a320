//===- TorchTypes.cpp - Syntax and verifiers of the types -----------------===//
//
// The syntax is torch-mlir's: types inside `list<>` and `optional<>` are
// written without the `!torch.` prefix.
//
//===----------------------------------------------------------------------===//

#include "torch_ltc/Dialect/Torch/TorchTypes.h"
#include "torch_ltc/Dialect/Torch/TorchDialect.h"
#include "torch_ltc/Dialect/Torch/TorchOps.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::torch_ltc::torch;

// Parse and print a type without its prefix, as inside a container.
static Type parseTorchType(AsmParser &parser);
static void printTorchType(Type type, AsmPrinter &printer);

#define GET_TYPEDEF_CLASSES
#include "torch_ltc/Dialect/Torch/TorchTypes.cpp.inc"

static Type parseTorchType(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef mnemonic;
  Type type;
  OptionalParseResult result = generatedTypeParser(parser, &mnemonic, type);
  if (result.has_value())
    return succeeded(*result) ? type : Type();
  parser.emitError(loc) << "unknown torch type '" << mnemonic << "'";
  return {};
}

static void printTorchType(Type type, AsmPrinter &printer) {
  if (failed(generatedTypePrinter(type, printer)))
    printer << type;
}

Type TorchDialect::parseType(DialectAsmParser &parser) const {
  return parseTorchType(parser);
}

void TorchDialect::printType(Type type, DialectAsmPrinter &printer) const {
  printTorchType(type, printer);
}

void TorchDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "torch_ltc/Dialect/Torch/TorchTypes.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// ValueTensorType
//===----------------------------------------------------------------------===//

static bool isTensorDType(Type dtype) {
  if (auto integer = dyn_cast<mlir::IntegerType>(dtype)) {
    if (integer.isSignless())
      return integer.getWidth() == 1;
    return llvm::is_contained({8u, 16u, 32u, 64u}, integer.getWidth());
  }
  if (auto complex = dyn_cast<ComplexType>(dtype))
    dtype = complex.getElementType(); // complex32 isn't traced
  else if (dtype.isF16() || dtype.isBF16())
    return true;
  return dtype.isF64() || dtype.isF32();
}

LogicalResult
ValueTensorType::verify(function_ref<InFlightDiagnostic()> emitError,
                        bool hasSizes, ArrayRef<int64_t> sizes, Type dtype) {
  for (int64_t size : sizes)
    if (size < 0 && !ShapedType::isDynamic(size))
      return emitError() << "negative size " << size;
  if (dtype && !isTensorDType(dtype))
    return emitError() << "dtype must be f64, f32, f16, bf16, i1, an "
                          "integer with a sign such as si64, or a complex "
                          "number of f32 or f64, got "
                       << dtype;
  return success();
}

/// Parses `[2,?,3]`.
static ParseResult parseSizes(AsmParser &parser,
                              SmallVectorImpl<int64_t> &sizes) {
  return parser.parseCommaSeparatedList(
      AsmParser::Delimiter::Square, [&]() -> ParseResult {
        if (succeeded(parser.parseOptionalQuestion())) {
          sizes.push_back(ShapedType::kDynamic);
          return success();
        }
        return parser.parseInteger(sizes.emplace_back());
      });
}

Type ValueTensorType::parse(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  bool hasSizes = false;
  SmallVector<int64_t> sizes;
  Type dtype;
  if (succeeded(parser.parseOptionalLess())) {
    if (failed(parser.parseOptionalStar())) {
      hasSizes = true;
      if (parseSizes(parser, sizes))
        return {};
    }
    if (parser.parseComma())
      return {};
    if (failed(parser.parseOptionalKeyword("unk")) && parser.parseType(dtype))
      return {};
    if (parser.parseGreater())
      return {};
  }
  return ValueTensorType::getChecked([&] { return parser.emitError(loc); },
                                     parser.getContext(), hasSizes, sizes,
                                     dtype);
}

void ValueTensorType::print(AsmPrinter &printer) const {
  if (!getHasSizes() && !getDtype())
    return;
  printer << "<";
  if (getHasSizes()) {
    printer << "[";
    llvm::interleave(
        getSizes(), printer.getStream(),
        [&](int64_t size) {
          if (ShapedType::isDynamic(size))
            printer << "?";
          else
            printer << size;
        },
        ",");
    printer << "]";
  } else {
    printer << "*";
  }
  printer << ",";
  if (getDtype())
    printer << getDtype();
  else
    printer << "unk";
  printer << ">";
}

bool ValueTensorType::isStatic() const {
  return getHasSizes() && getDtype() &&
         llvm::none_of(getSizes(), ShapedType::isDynamic);
}

int64_t ValueTensorType::getNumElements() const {
  return ShapedType::getNumElements(getSizes());
}

RankedTensorType ValueTensorType::getLiteralType() const {
  return RankedTensorType::get(getSizes(), getDtype());
}

//===----------------------------------------------------------------------===//
// ListType, OptionalType
//===----------------------------------------------------------------------===//

static Type parseContained(AsmParser &parser) {
  if (parser.parseLess())
    return {};
  Type contained = parseTorchType(parser);
  if (!contained || parser.parseGreater())
    return {};
  return contained;
}

static void printContained(Type contained, AsmPrinter &printer) {
  printer << "<";
  printTorchType(contained, printer);
  printer << ">";
}

Type ListType::parse(AsmParser &parser) {
  Type contained = parseContained(parser);
  return contained ? ListType::get(parser.getContext(), contained) : Type();
}
void ListType::print(AsmPrinter &printer) const {
  printContained(getContainedType(), printer);
}

Type OptionalType::parse(AsmParser &parser) {
  Type contained = parseContained(parser);
  return contained ? OptionalType::get(parser.getContext(), contained) : Type();
}
void OptionalType::print(AsmPrinter &printer) const {
  printContained(getContainedType(), printer);
}

//===----------------------------------------------------------------------===//
// Predicates
//===----------------------------------------------------------------------===//

bool mlir::torch_ltc::torch::isComplexTensor(Type type) {
  auto tensor = dyn_cast<ValueTensorType>(type);
  return tensor && isa_and_present<ComplexType>(tensor.getDtype());
}

bool mlir::torch_ltc::torch::hasComplexTensor(Operation *op) {
  auto isComplex = [](Value value) {
    auto list = value.getDefiningOp<PrimListConstructOp>();
    return isComplexTensor(value.getType()) ||
           (list &&
            llvm::any_of(list.getElements().getTypes(), isComplexTensor));
  };
  return llvm::any_of(op->getOperands(), isComplex) ||
         llvm::any_of(op->getResultTypes(), isComplexTensor);
}

bool mlir::torch_ltc::torch::isOptionalTensorType(Type type) {
  if (auto optional = dyn_cast<OptionalType>(type))
    return isTensorType(optional.getContainedType());
  return isTensorType(type) || isa<torch::NoneType>(type);
}

bool mlir::torch_ltc::torch::isListOf(Type type,
                                      function_ref<bool(Type)> isElement) {
  auto list = dyn_cast<ListType>(type);
  return list && isElement(list.getContainedType());
}

static bool isTensorSubtype(ValueTensorType type, ValueTensorType expected) {
  if (expected.getDtype() && type.getDtype() != expected.getDtype())
    return false;
  if (!expected.getHasSizes())
    return true;
  if (!type.getHasSizes() || type.getRank() != expected.getRank())
    return false;
  return llvm::all_of(llvm::zip(type.getSizes(), expected.getSizes()),
                      [](auto sizes) {
                        auto [size, wanted] = sizes;
                        return ShapedType::isDynamic(wanted) || size == wanted;
                      });
}

bool mlir::torch_ltc::torch::isSubtype(Type type, Type expected) {
  if (type == expected)
    return true;
  if (auto optional = dyn_cast<OptionalType>(expected))
    return isa<torch::NoneType>(type) ||
           isSubtype(type, optional.getContainedType());
  if (isa<NumberType>(expected))
    return isIntType(type) || isFloatType(type);
  auto tensor = dyn_cast<ValueTensorType>(type);
  auto expectedTensor = dyn_cast<ValueTensorType>(expected);
  return tensor && expectedTensor && isTensorSubtype(tensor, expectedTensor);
}
