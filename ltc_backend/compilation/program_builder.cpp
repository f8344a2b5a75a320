//===- program_builder.cpp - A traced graph as a torch-dialect program ----===//

#include "compilation/program_builder.h"

#include "config/config.h"
#include "programs/program.h"

#include <stdexcept>

using namespace torch_ltc;

namespace {

/// Converts a shape for the C API. An undefined result of an op (for example, a
/// gradient that isn't needed) gets the type of an empty vector.
LtcTensorType tensorType(const torch::lazy::Shape &shape) {
  static const int64_t empty[] = {0};
  if (shape.scalar_type() == c10::ScalarType::Undefined)
    return {LTC_DTYPE_FLOAT32, 1, empty};
  return {toLtcDType(shape.scalar_type()), size_t(shape.dim()),
          shape.sizes().data()};
}

class Builder {
public:
  Builder(const CompilerLibrary &library, LtcProgram program,
          const GraphSnapshot &graph)
      : library(library), program(program), graph(graph),
        values(graph.nodes.size()) {}

  void build() {
    addParameters();
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      const SnapshotNode &node = graph.nodes[i];
      if (node.record)
        appendOp(i);
      else
        values[i] = {parameters[node.parameter]};
    }
    std::vector<LtcValue> outputs;
    std::vector<int64_t> updated;
    for (ResultRef result : graph.results) {
      outputs.push_back(values[result.position][result.index]);
      std::optional<size_t> parameter = updatedParameter(graph, result);
      updated.push_back(parameter ? int64_t(*parameter) : -1);
    }
    throwIfFailed(library.ltcProgramSetOutputs(program, outputs.data(),
                                               updated.data(), outputs.size()));
  }

private:
  void addParameters() {
    for (const SnapshotParameter &parameter : graph.parameters)
      parameters.push_back(library.ltcProgramAddTensorParameter(
          program, tensorType(parameter.shape),
          parameter.name.empty() ? nullptr : parameter.name.c_str(),
          parameter.donatable));
    for (bool isFloat : graph.scalarIsFloat)
      scalars.push_back(isFloat ? library.ltcProgramAddFloatParameter(program)
                                : library.ltcProgramAddIntParameter(program));
  }

  void appendOp(size_t position) {
    const SnapshotNode &node = graph.nodes[position];
    operand = node.firstOperand;
    scalar = node.firstScalar;
    file = locationOf(node.location).file;
    modulePath = modulePathText(node.modulePath);
    location = {file.empty() ? nullptr : file.c_str(),
                locationOf(node.location).line,
                modulePath.empty() ? nullptr : modulePath.c_str(),
                unsigned(position) + 1};

    std::vector<LtcValue> operands;
    AttributeReader reader(node.attributes->words);
    for (const ArgumentSpec &spec : node.record->arguments)
      operands.push_back(value(reader.next(), spec));
    std::vector<LtcTensorType> types;
    for (const torch::lazy::Shape &shape : node.shapes)
      types.push_back(tensorType(shape));
    values[position].resize(types.size());
    LtcStatus status = library.ltcProgramAppend(
        program, node.record->emitName, operands.data(), operands.size(),
        types.data(), types.size(), &location, values[position].data());
    if (status) {
      std::string message = ltcStatusMessage(status);
      ltcStatusDestroy(status);
      throw std::runtime_error(node.record->name + ": " + message +
                               messageSuffix(node.location));
    }
  }

  LtcValue value(const Attribute &attribute, const ArgumentSpec &spec) {
    switch (attribute.tag) {
    case Tag::none:
      return noneOrDefault(spec);
    case Tag::operand:
      return nextOperand();
    case Tag::operandList:
    case Tag::optionalOperandList:
      return operandList(attribute);
    case Tag::integer:
    case Tag::dtype:
      return library.ltcProgramConstantInt(program, attribute.integer());
    case Tag::floating:
      return library.ltcProgramConstantFloat(program, attribute.floating());
    case Tag::boolean:
      // A bool becomes an int: in the dialect, a Scalar is an int or a float.
      if (spec.kind == ArgumentKind::Scalar)
        return library.ltcProgramConstantInt(program, attribute.boolean());
      return library.ltcProgramConstantBool(program, attribute.boolean());
    case Tag::integers:
    case Tag::floatings:
    case Tag::booleans:
      return numberList(attribute);
    case Tag::string:
      return library.ltcProgramConstantString(program,
                                              attribute.string().c_str());
    case Tag::dynamicInt:
    case Tag::dynamicFloat:
      return scalars[scalar++];
    case Tag::dynamicIntegers:
      scalar += attribute.count;
      return library.ltcProgramList(program, LTC_LIST_INT,
                                    &scalars[scalar - attribute.count],
                                    attribute.count);
    case Tag::numberTensor:
      return library.ltcProgramNumberToTensor(
          program, scalars[scalar++],
          toLtcDType(c10::ScalarType(attribute.small)), &location);
    }
    throw std::logic_error("unknown attribute tag");
  }

  /// The constant for an absent argument. A boolean argument that the tracer
  /// ignores (for example, non_blocking) still needs a bool in the dialect.
  LtcValue noneOrDefault(const ArgumentSpec &spec) {
    if (spec.kind == ArgumentKind::Ignored && spec.defaultValue &&
        spec.defaultValue->isBool())
      return library.ltcProgramConstantBool(program,
                                            spec.defaultValue->toBool());
    return library.ltcProgramConstantNone(program);
  }

  LtcValue nextOperand() {
    ResultRef ref = graph.operands[operand++];
    return values[ref.position][ref.index];
  }

  LtcValue operandList(const Attribute &attribute) {
    bool optional = attribute.tag == Tag::optionalOperandList;
    std::vector<LtcValue> elements;
    for (uint32_t i = 0; i < attribute.count; ++i)
      elements.push_back(optional && !attribute.isPresent(i)
                             ? library.ltcProgramConstantNone(program)
                             : nextOperand());
    return library.ltcProgramList(
        program, optional ? LTC_LIST_OPTIONAL_TENSOR : LTC_LIST_TENSOR,
        elements.data(), elements.size());
  }

  LtcValue numberList(const Attribute &attribute) {
    std::vector<LtcValue> elements;
    LtcListKind kind = LTC_LIST_INT;
    for (uint32_t i = 0; i < attribute.count; ++i) {
      if (attribute.tag == Tag::integers) {
        elements.push_back(
            library.ltcProgramConstantInt(program, attribute.payload[i]));
      } else if (attribute.tag == Tag::floatings) {
        kind = LTC_LIST_FLOAT;
        elements.push_back(
            library.ltcProgramConstantFloat(program, attribute.floatingAt(i)));
      } else {
        kind = LTC_LIST_BOOL;
        elements.push_back(
            library.ltcProgramConstantBool(program, int(attribute.payload[i])));
      }
    }
    return library.ltcProgramList(program, kind, elements.data(),
                                  elements.size());
  }

  const CompilerLibrary &library;
  LtcProgram program;
  const GraphSnapshot &graph;
  std::vector<std::vector<LtcValue>> values; // by node and result
  std::vector<LtcValue> parameters, scalars;
  // State of the op that is being appended.
  uint32_t operand = 0, scalar = 0;
  std::string file, modulePath;
  LtcLocation location{};
};

} // namespace

ProgramHandle::ProgramHandle(const CompilerLibrary &library,
                             const std::string &name,
                             const ProgramHandle *other)
    : library(library) {
  throwIfFailed(other ? library.ltcProgramCreateInContextOf(
                            other->get(), name.c_str(), &program)
                      : library.ltcProgramCreate(library.compiler, name.c_str(),
                                                 &program));
}

ProgramHandle::~ProgramHandle() { library.ltcProgramDestroy(program); }

void torch_ltc::buildProgram(const CompilerLibrary &library, LtcProgram program,
                             const GraphSnapshot &graph) {
  Builder(library, program, graph).build();
}

std::string torch_ltc::stageText(const GraphSnapshot &graph,
                                 const std::string &stage) {
  if (stage == "ir")
    return graphText(graph);
  StageRequest request;
  request.stage = stage;
  request.locations =
      config().dump_locations.get() && config().source_info.get();
  return stageModule(graph, request);
}

LtcStageOptions torch_ltc::stageOptions(const StageRequest &request,
                                        std::vector<const char *> &legalOps) {
  for (const std::string &op : request.legalOps)
    legalOps.push_back(op.c_str());
  LtcStageOptions options{};
  options.stage = request.stage.c_str();
  options.legal_ops = legalOps.data();
  options.legal_op_count = legalOps.size();
  options.print_locations = request.locations;
  options.portable = request.portable;
  options.bytecode = request.bytecode;
  return options;
}

std::string torch_ltc::stageModule(const GraphSnapshot &graph,
                                   const StageRequest &request) {
  const CompilerLibrary &library = compilerLibrary();
  ProgramHandle program(library, entryName(graph));
  buildProgram(library, program.get(), graph);
  std::vector<const char *> legalOps;
  LtcStageOptions options = stageOptions(request, legalOps);
  LtcBytes bytes{};
  throwIfFailed(library.ltcProgramStage(program.get(), &options, &bytes));
  std::string result(bytes.data, bytes.size);
  ltcBytesDestroy(bytes);
  return result;
}

std::string torch_ltc::entryName(const GraphSnapshot &graph) {
  return "step_" + graph.name.substr(0, 12);
}
