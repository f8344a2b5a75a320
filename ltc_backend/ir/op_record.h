//===- op_record.h - The op table's rows at run time ------------*- C++ -*-===//
//
// One record for each traced op, generated from the op table
// (mlir_lowering/op_table) as OpRecords.inc, and completed with the op's schema
// from the installed torch.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_IR_OP_RECORD_H
#define TORCH_LTC_IR_OP_RECORD_H

#include "ir/attributes.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/lazy/core/ir.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace torch_ltc {

enum class Family : uint8_t {
#define OP_FAMILY(Name) Name,
#include "OpRules.inc"
};

// The suffix distinguishes table words such as "bool" from C++ keywords.
enum class ShapeRule : uint8_t {
#define OP_SHAPE_RULE(Name) Name##Shape,
#include "OpRules.inc"
};

enum class DTypeRule : uint8_t {
#define OP_DTYPE_RULE(Name) Name##DType,
#include "OpRules.inc"
};

/// How the strides of an op's results follow from those of its operands.
enum class StrideRule : uint8_t {
#define OP_STRIDE_RULE(Name) Name,
#include "OpRules.inc"
};

enum class TraceKind : uint8_t {
#define OP_TRACE_KIND(Name) Name##Trace,
#include "OpRules.inc"
};

/// How the tracer treats an argument of a schema.
enum class ArgumentKind : uint8_t {
  Tensor, // also optional
  TensorList,
  OptionalTensorList,
  Scalar,     // a Python number, also optional
  Number,     // int, float or bool of the schema, also optional
  NumberList, // also optional
  String,
  DType,
  Ignored, // layout, device, pin_memory, memory_format, generator, non_blocking
};

struct ArgumentSpec {
  ArgumentKind kind;
  bool isDim = false; // a dimension, counted from the end if negative
  /// Whether a value of 0 is a constant: the program then doesn't read the
  /// operand that the argument scales.
  bool isConstantAtZero = false;
  // Columns `parameters`, `varies` and `sizes` of the op table.
  bool isDynamicScalar = false; // always a dynamic scalar of the program
  bool varies = false;          // a dynamic scalar once its value has differed
  /// Whether the argument's integers (`view`'s size, a slice's end), or its
  /// text, follow tensors' sizes, and so differ between traces of one Python
  /// program.
  bool followsSizes = false;
  /// The lowest absolute value of an integer that may differ between traces
  /// with the same skeleton. Integers below it may be lowered differently: for
  /// example, a stride of 1 needs no slice. 0 if the lowering also accepts an
  /// integer that is unknown at compile time (`varies`), or if the column
  /// `sizes` says so.
  int64_t lowest = 2;
  std::optional<c10::IValue> defaultValue;
  std::string name;
};

struct OpRecord {
  const char *schemaText;
  const char *emitName; // "aten.add.Tensor"
  Family family;
  ShapeRule shapeRule;
  DTypeRule dtypeRule;
  StrideRule strideRule;
  TraceKind traceKind;
  const char *varies;  // columns `varies`, `parameters`: "end,alpha!,beta!=0"
  const char *sizes;   // "start,end": column `sizes`
  const char *element; // column `element`; "" if none
  const char *updatedOperands; // "0,2,3": column `updates`
  // The columns of these names.
  bool divides = false;
  bool checksValues = false;
  bool overlaps = false;
  bool realResult = false;
  bool castsOut = false;
  bool plainOut = false;
  bool wantsContiguous = false;
  bool repeatsEdges = false;
  bool foreach = false;

  // Completed by `resolve`.
  std::string name = {}; // "aten::add.Tensor"
  torch::lazy::OpKind opKind = {};
  uint64_t id = 0;     // hash of `name`: stable across processes
  bool isOurs = false; // in namespace torch_ltc, so eager doesn't have the op
  std::vector<ArgumentSpec> arguments = {};
  /// The operand that each result updates; the last element also applies to all
  /// further results.
  std::vector<size_t> updates = {};
  size_t numResults = 1;
  bool returnsList = false;
  bool hasTensorArgument = false;
  bool hasVaryingNumbers = false;
  /// Whether some of the varying numbers don't follow sizes, as floats never
  /// do.
  bool hasUnsizedNumbers = false;
  /// Position of the number that the op writes to elements of the result, if
  /// there is one.
  std::optional<size_t> elementNumber = {};
  std::optional<c10::OperatorHandle> handle = {};
};

/// All records, in the table's order. Ops that the installed torch doesn't have
/// are skipped with a warning.
const std::vector<OpRecord> &opRecords();
/// The record of an op by its name ("aten::add.Tensor"), null if there is none.
const OpRecord *findOpRecord(const std::string &name);
/// The record of an op by its name. Throws c10::Error if there is none.
const OpRecord &getOpRecord(const std::string &name);
/// The record of the op that copies a view: "aten::select.int" -> the row of
/// "aten::select_copy.int". Null if there is none.
const OpRecord *copyRecord(const c10::OperatorName &view);

/// Returns the argument `name` of an op with these words; none if the op has no
/// such argument.
std::optional<Attribute> findAttribute(const OpRecord &record,
                                       c10::ArrayRef<Word> words,
                                       std::string_view name);

/// Whether `list`, a comma-separated list of patterns, contains the op. A
/// pattern is "aten::add.Tensor", or "aten::add" for all its overloads; `*`
/// matches any characters; `!` before a pattern excludes ops; the last matching
/// pattern decides.
bool isOpListed(const std::string &list, const std::string &opName);

} // namespace torch_ltc

#endif // TORCH_LTC_IR_OP_RECORD_H
