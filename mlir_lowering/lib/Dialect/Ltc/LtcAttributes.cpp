//===- LtcAttributes.cpp - Schedules and places ---------------------------===//

#include "torch_ltc/Dialect/Ltc/LtcDialect.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::torch_ltc::ltc;

template <typename Element>
static FailureOr<SmallVector<Element>> parseList(AsmParser &parser) {
  SmallVector<Element> list;
  auto parseElement = [&]() -> ParseResult {
    FailureOr<Element> element = FieldParser<Element>::parse(parser);
    if (failed(element))
      return failure();
    list.push_back(*element);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                     parseElement))
    return failure();
  return list;
}

template <typename Element>
static void printList(AsmPrinter &printer, ArrayRef<Element> list) {
  printer << '[';
  llvm::interleaveComma(list, printer, [&](const Element &element) {
    printer.printStrippedAttrOrType(element);
  });
  printer << ']';
}

static void printList(AsmPrinter &printer, ArrayRef<unsigned> list) {
  printer << '[';
  llvm::interleaveComma(list, printer);
  printer << ']';
}

#define GET_ATTRDEF_CLASSES
#include "torch_ltc/Dialect/Ltc/LtcAttributes.cpp.inc"

void LtcDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "torch_ltc/Dialect/Ltc/LtcAttributes.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Schedules
//===----------------------------------------------------------------------===//

LogicalResult ScheduleAttr::verify(
    function_ref<InFlightDiagnostic()> emitError, ArrayRef<AxisAttr> axes,
    ArrayRef<unsigned> outer, std::optional<unsigned> split, int64_t block,
    std::optional<unsigned> tile, ArrayRef<unsigned> stored,
    ArrayRef<NestAttr> nests, int64_t iterations, int64_t grain) {
  SmallVector<unsigned> used(outer), kept;
  if (split)
    used.push_back(*split);
  if (tile)
    used.push_back(*tile);
  for (NestAttr nest : nests) {
    llvm::append_range(used, nest.getAxes());
    llvm::append_range(used, nest.getUnrolled());
    llvm::append_range(kept, nest.getMembers());
  }
  for (unsigned axis : used)
    if (axis >= axes.size())
      return emitError() << "axis " << axis << " of " << axes.size();
  if (split.has_value() != (block > 0))
    return emitError()
           << "a split axis must have blocks of at least one element";
  if (iterations < 0 || grain < 0)
    return emitError() << "iterations and grain can't be negative";
  llvm::sort(kept);
  if (ArrayRef(kept) != stored)
    return emitError()
           << "the nests store members that differ from those in 'stored'";
  return success();
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

static constexpr StringLiteral kPlaceKinds[] = {"parameter", "output", "arena"};

void PlaceAttr::print(AsmPrinter &printer) const {
  printer << '<' << kPlaceKinds[unsigned(getKind())] << ' ' << getNumber();
  if (getPart() != 0)
    printer << " + " << getPart();
  if (isArena())
    printer << ", bytes = " << getBytes() << ", live = " << getFirst() << " to "
            << getLast();
  printer << '>';
}

Attribute PlaceAttr::parse(AsmParser &parser, Type) {
  StringRef kind;
  int64_t number = 0, part = 0, bytes = 0, first = 0, last = 0;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseKeyword(&kind) ||
      parser.parseInteger(number))
    return {};
  const auto *known = llvm::find(kPlaceKinds, kind);
  if (known == std::end(kPlaceKinds)) {
    parser.emitError(loc, "expected parameter, output or arena");
    return {};
  }
  if (succeeded(parser.parseOptionalPlus()) && parser.parseInteger(part))
    return {};
  auto placeKind = PlaceKind(known - kPlaceKinds);
  if (placeKind == PlaceKind::Arena &&
      (parser.parseComma() || parser.parseKeyword("bytes") ||
       parser.parseEqual() || parser.parseInteger(bytes) ||
       parser.parseComma() || parser.parseKeyword("live") ||
       parser.parseEqual() || parser.parseInteger(first) ||
       parser.parseKeyword("to") || parser.parseInteger(last)))
    return {};
  if (parser.parseGreater())
    return {};
  return get(parser.getContext(), placeKind, number, part, bytes, first, last);
}
