//===- StablehloAttributes.cpp - Syntax of the attributes -----------------===//

#include "torch_ltc/Dialect/Stablehlo/StablehloDialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::torch_ltc::stablehlo;

#include "torch_ltc/Dialect/Stablehlo/StablehloEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "torch_ltc/Dialect/Stablehlo/StablehloAttributes.cpp.inc"

void StablehloDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "torch_ltc/Dialect/Stablehlo/StablehloAttributes.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Fields of attributes: <name = [1, 2], name = 3>
//===----------------------------------------------------------------------===//

namespace {
/// A field of an attribute: a list, or one number.
struct Field {
  StringRef name;
  bool isList;
  SmallVector<int64_t> values;
};
} // namespace

/// Prints the fields except empty lists.
static void printFields(AsmPrinter &printer, ArrayRef<Field> fields) {
  printer << '<';
  bool first = true;
  for (const Field &field : fields) {
    if (field.isList && field.values.empty())
      continue;
    printer << (first ? "" : ", ") << field.name << " = ";
    first = false;
    if (!field.isList) {
      printer << field.values[0];
      continue;
    }
    printer << '[';
    llvm::interleaveComma(field.values, printer);
    printer << ']';
  }
  printer << '>';
}

static ParseResult parseField(AsmParser &parser,
                              MutableArrayRef<Field> fields) {
  StringRef name;
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseKeyword(&name) || parser.parseEqual())
    return failure();
  auto *field =
      llvm::find_if(fields, [&](Field &known) { return known.name == name; });
  if (field == fields.end())
    return parser.emitError(location) << "unknown field '" << name << "'";
  auto parseNumber = [&]() -> ParseResult {
    return parser.parseInteger(field->values.emplace_back());
  };
  if (!field->isList)
    return parseNumber();
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                        parseNumber);
}

static ParseResult parseFields(AsmParser &parser,
                               MutableArrayRef<Field> fields) {
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, [&] {
        return parseField(parser, fields);
      }))
    return failure();
  for (const Field &field : fields)
    if (!field.isList && field.values.size() != 1)
      return parser.emitError(parser.getNameLoc())
             << "field '" << field.name << "' must be given once";
  return success();
}

static SmallVector<int64_t> list(ArrayRef<int64_t> values) {
  return SmallVector<int64_t>(values);
}

//===----------------------------------------------------------------------===//
// dot and gather
//===----------------------------------------------------------------------===//

void DotDimensionNumbersAttr::print(AsmPrinter &printer) const {
  printFields(
      printer,
      {{"lhs_batching_dimensions", true, list(getLhsBatching())},
       {"rhs_batching_dimensions", true, list(getRhsBatching())},
       {"lhs_contracting_dimensions", true, list(getLhsContracting())},
       {"rhs_contracting_dimensions", true, list(getRhsContracting())}});
}

Attribute DotDimensionNumbersAttr::parse(AsmParser &parser, Type) {
  Field fields[] = {{"lhs_batching_dimensions", true, {}},
                    {"rhs_batching_dimensions", true, {}},
                    {"lhs_contracting_dimensions", true, {}},
                    {"rhs_contracting_dimensions", true, {}}};
  if (parseFields(parser, fields))
    return {};
  return get(parser.getContext(), fields[0].values, fields[1].values,
             fields[2].values, fields[3].values);
}

void GatherDimensionNumbersAttr::print(AsmPrinter &printer) const {
  printFields(printer,
              {{"offset_dims", true, list(getOffsetDims())},
               {"collapsed_slice_dims", true, list(getCollapsedSliceDims())},
               {"start_index_map", true, list(getStartIndexMap())},
               {"index_vector_dim", false, {getIndexVectorDim()}}});
}

Attribute GatherDimensionNumbersAttr::parse(AsmParser &parser, Type) {
  Field fields[] = {{"offset_dims", true, {}},
                    {"collapsed_slice_dims", true, {}},
                    {"start_index_map", true, {}},
                    {"index_vector_dim", false, {}}};
  if (parseFields(parser, fields))
    return {};
  return get(parser.getContext(), fields[0].values, fields[1].values,
             fields[2].values, fields[3].values[0]);
}

//===----------------------------------------------------------------------===//
// conv
//===----------------------------------------------------------------------===//

/// Prints [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1].
void ConvDimensionNumbersAttr::print(AsmPrinter &printer) const {
  auto printDims = [&](StringRef first, StringRef second) {
    printer << '[' << first << ", " << second;
    for (int64_t dim = 0; dim < getSpatialRank(); ++dim)
      printer << ", " << dim;
    printer << ']';
  };
  printer << '<';
  printDims("b", "f");
  printer << 'x';
  printDims("o", "i");
  printer << "->";
  printDims("b", "f");
  printer << '>';
}

static ParseResult parseDims(AsmParser &parser, StringRef first,
                             StringRef second, int64_t &rank) {
  if (parser.parseLSquare() || parser.parseKeyword(first) ||
      parser.parseComma() || parser.parseKeyword(second))
    return failure();
  for (rank = 0; succeeded(parser.parseOptionalComma()); ++rank) {
    int64_t dim;
    if (parser.parseInteger(dim))
      return failure();
    if (dim != rank)
      return parser.emitError(parser.getNameLoc())
             << "spatial dimensions must be in order";
  }
  return parser.parseRSquare();
}

Attribute ConvDimensionNumbersAttr::parse(AsmParser &parser, Type) {
  int64_t input, kernel, output;
  if (parser.parseLess() || parseDims(parser, "b", "f", input) ||
      parser.parseKeyword("x") || parseDims(parser, "o", "i", kernel) ||
      parser.parseArrow() || parseDims(parser, "b", "f", output) ||
      parser.parseGreater())
    return {};
  if (input != kernel || input != output) {
    parser.emitError(parser.getNameLoc())
        << "the numbers of spatial dimensions differ";
    return {};
  }
  return get(parser.getContext(), input);
}
