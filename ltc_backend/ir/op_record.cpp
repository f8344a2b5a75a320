//===- op_record.cpp - The op table's rows at run time --------------------===//

#include "ir/op_record.h"

#include "config/log.h"
#include "ir/hash.h"

#include <algorithm>
#include <cstring>
#include <sstream>
#include <unordered_map>

using namespace torch_ltc;

namespace {

bool isDimName(const std::string &name) {
  for (const char *dim : {"dim", "dims", "dim0", "dim1", "dim2", "dimension"})
    if (name == dim)
      return true;
  return false;
}

/// Returns the words of `list`, which are separated by commas.
std::vector<std::string_view> wordsOf(std::string_view list) {
  std::vector<std::string_view> words;
  while (!list.empty()) {
    size_t comma = std::min(list.find(','), list.size());
    words.push_back(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return words;
}

bool contains(const std::vector<std::string_view> &words,
              std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// Sets the fields of `spec` that the words of the column `sizes` describe:
/// "end" or, with the lowest number that isn't part of the skeleton, "pad>=0".
void setSizes(ArgumentSpec &spec, const std::vector<std::string_view> &words) {
  for (std::string_view word : words) {
    size_t limit = word.find(">=");
    if (word.substr(0, limit) != spec.name)
      continue;
    spec.followsSizes = true;
    if (limit != std::string_view::npos)
      spec.lowest = word[limit + 2] - '0';
  }
}

ArgumentKind argumentKindOf(const c10::Argument &argument) {
  for (const char *ignored : {"layout", "device", "pin_memory", "memory_format",
                              "generator", "non_blocking"})
    if (argument.name() == ignored)
      return ArgumentKind::Ignored;
  c10::TypePtr type = argument.type();
  if (auto optional = type->cast<c10::OptionalType>())
    type = optional->getElementType();
  // The declared type distinguishes a dtype from an int; the IValue doesn't.
  c10::TypePtr real = argument.real_type();
  if (auto optional = real->cast<c10::OptionalType>())
    real = optional->getElementType();
  if (real->kind() == c10::TypeKind::ScalarTypeType)
    return ArgumentKind::DType;
  switch (type->kind()) {
  case c10::TypeKind::TensorType:
    return ArgumentKind::Tensor;
  case c10::TypeKind::NumberType:
    return ArgumentKind::Scalar;
  case c10::TypeKind::StringType:
    return ArgumentKind::String;
  case c10::TypeKind::ListType: {
    c10::TypePtr element = type->expectRef<c10::ListType>().getElementType();
    if (element->kind() == c10::TypeKind::TensorType)
      return ArgumentKind::TensorList;
    if (element->kind() == c10::TypeKind::OptionalType)
      return ArgumentKind::OptionalTensorList;
    return ArgumentKind::NumberList;
  }
  case c10::TypeKind::GeneratorType:
  case c10::TypeKind::DeviceObjType:
    return ArgumentKind::Ignored;
  default:
    return ArgumentKind::Number;
  }
}

/// Completes `record`, a table row, with the schema from torch. Logs a warning
/// and returns false if torch doesn't have the op. Only the name of the row's
/// schema is used (parsing a thousand schemas takes milliseconds); tests
/// compare the rest with torch's.
bool resolve(OpRecord &record) {
  std::string_view schemaText = record.schemaText;
  record.name = schemaText.substr(0, schemaText.find('('));
  size_t dot = record.name.find('.');
  std::string baseName = record.name.substr(0, dot);
  std::string overload =
      dot == std::string::npos ? "" : record.name.substr(dot + 1);
  record.handle = c10::Dispatcher::singleton().findSchema({baseName, overload});
  if (!record.handle) {
    log(LogLevel::Warning, "The installed torch has no op '" + record.name +
                               "'; the tracer skips it.");
    return false;
  }
  const c10::FunctionSchema &schema = record.handle->schema();
  record.opKind = torch::lazy::OpKind(c10::Symbol::fromQualString(baseName));
  record.id = hashBytes(record.name.data(), record.name.size(), 0).low;
  record.isOurs = record.name.starts_with("torch_ltc::");
  std::vector<std::string_view> numbers = wordsOf(record.varies);
  std::vector<std::string_view> sizes = wordsOf(record.sizes);
  for (const c10::Argument &argument : schema.arguments()) {
    ArgumentSpec spec;
    spec.kind = argumentKindOf(argument);
    spec.name = argument.name();
    spec.isDim = spec.kind != ArgumentKind::Tensor && isDimName(spec.name);
    spec.isConstantAtZero = contains(numbers, spec.name + "!=0");
    spec.isDynamicScalar =
        spec.isConstantAtZero || contains(numbers, spec.name + "!");
    spec.varies = contains(numbers, spec.name);
    record.hasVaryingNumbers |= spec.varies;
    if (spec.varies)
      spec.lowest = 0;
    setSizes(spec, sizes);
    bool mayBeFloat = argument.type()->kind() == c10::TypeKind::NumberType;
    record.hasUnsizedNumbers |=
        spec.varies && (!spec.followsSizes || mayBeFloat);
    if (argument.default_value())
      spec.defaultValue = *argument.default_value();
    record.hasTensorArgument |= spec.kind == ArgumentKind::Tensor ||
                                spec.kind == ArgumentKind::TensorList;
    if (spec.name == record.element)
      record.elementNumber = record.arguments.size();
    record.arguments.push_back(std::move(spec));
  }
  for (std::string_view word : wordsOf(record.updatedOperands))
    record.updates.push_back(size_t(word[0] - '0'));
  record.numResults = schema.returns().size();
  record.returnsList =
      record.numResults == 1 &&
      schema.returns()[0].type()->kind() == c10::TypeKind::ListType;
  return true;
}

struct Table {
  std::vector<OpRecord> records;
  std::unordered_map<std::string, const OpRecord *> byName;

  Table() {
    const OpRecord rows[] = {
#define OP_RECORD(SchemaText, Emit, FamilyWord, ShapeWord, DTypeWord,          \
                  StrideWord, TraceWord, Varies, Sizes, Element, Updates, ...) \
  OpRecord{.schemaText = SchemaText,                                           \
           .emitName = Emit,                                                   \
           .family = Family::FamilyWord,                                       \
           .shapeRule = ShapeRule::ShapeWord##Shape,                           \
           .dtypeRule = DTypeRule::DTypeWord##DType,                           \
           .strideRule = StrideRule::StrideWord,                               \
           .traceKind = TraceKind::TraceWord##Trace,                           \
           .varies = Varies,                                                   \
           .sizes = Sizes,                                                     \
           .element = Element,                                                 \
           .updatedOperands = Updates,                                         \
           __VA_ARGS__},
#include "OpRecords.inc"
    };
    for (OpRecord record : rows)
      if (resolve(record))
        records.push_back(std::move(record));
    for (const OpRecord &record : records)
      byName.emplace(record.name, &record);
  }
};

const Table &table() {
  static const auto *instance = new Table;
  return *instance;
}

} // namespace

const std::vector<OpRecord> &torch_ltc::opRecords() { return table().records; }

const OpRecord *torch_ltc::findOpRecord(const std::string &name) {
  auto found = table().byName.find(name);
  return found == table().byName.end() ? nullptr : found->second;
}

const OpRecord &torch_ltc::getOpRecord(const std::string &name) {
  const OpRecord *record = findOpRecord(name);
  TORCH_CHECK(record, "The op table has no row for ", name,
              ", which the tracer needs.");
  return *record;
}

const OpRecord *torch_ltc::copyRecord(const c10::OperatorName &view) {
  std::string copy = view.name + "_copy";
  if (!view.overload_name.empty())
    copy += "." + view.overload_name;
  return findOpRecord(copy);
}

std::optional<Attribute> torch_ltc::findAttribute(const OpRecord &record,
                                                  c10::ArrayRef<Word> words,
                                                  std::string_view name) {
  AttributeReader reader(words);
  for (const ArgumentSpec &spec : record.arguments) {
    Attribute attribute = reader.next();
    if (spec.name == name)
      return attribute;
  }
  return std::nullopt;
}

/// Whether `pattern`, in which `*` matches any characters, matches `text`.
static bool matches(std::string_view pattern, std::string_view text) {
  size_t star = pattern.find('*');
  if (star == std::string_view::npos)
    return pattern == text;
  if (text.substr(0, star) != pattern.substr(0, star))
    return false;
  std::string_view rest = pattern.substr(star + 1);
  for (size_t i = star; i <= text.size(); ++i)
    if (matches(rest, text.substr(i)))
      return true;
  return false;
}

bool torch_ltc::isOpListed(const std::string &list, const std::string &opName) {
  if (list.empty())
    return false;
  std::string base = opName.substr(0, opName.find('.'));
  bool listed = false;
  std::istringstream patterns(list);
  for (std::string pattern; std::getline(patterns, pattern, ',');) {
    std::erase(pattern, ' ');
    bool isTakenOut = pattern.rfind('!', 0) == 0;
    std::string_view words = std::string_view(pattern).substr(isTakenOut);
    if (matches(words, opName) || matches(words, base))
      listed = !isTakenOut;
  }
  return listed;
}
