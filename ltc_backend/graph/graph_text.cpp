//===- graph_text.cpp - Graphs as text ------------------------------------===//

#include "graph/graph.h"

#include <sstream>

using namespace torch_ltc;

namespace {

void printRef(std::ostream &stream, const GraphSnapshot &graph, ResultRef ref) {
  stream << "%" << ref.position;
  if (graph.nodes[ref.position].shapes.size() > 1)
    stream << "." << ref.index;
}

void printAttribute(std::ostream &stream, const Attribute &attribute) {
  auto list = [&](auto print) {
    stream << "[";
    for (size_t i = 0; i < attribute.count; ++i) {
      stream << (i ? ", " : "");
      print(i);
    }
    stream << "]";
  };
  switch (attribute.tag) {
  case Tag::integer:
    stream << attribute.integer();
    break;
  case Tag::floating:
    stream << attribute.floating();
    break;
  case Tag::boolean:
    stream << (attribute.boolean() ? "True" : "False");
    break;
  case Tag::integers:
    list([&](size_t i) { stream << attribute.payload[i]; });
    break;
  case Tag::floatings:
    list([&](size_t i) { stream << attribute.floatingAt(i); });
    break;
  case Tag::booleans:
    list(
        [&](size_t i) { stream << (attribute.payload[i] ? "True" : "False"); });
    break;
  case Tag::string:
    stream << '"' << attribute.string() << '"';
    break;
  case Tag::dtype:
    stream << c10::toString(c10::ScalarType(attribute.integer()));
    break;
  default:
    stream << "None";
  }
}

/// Prints the arguments of an op, tensors and numbers, in schema order.
void printArguments(std::ostream &stream, const GraphSnapshot &graph,
                    const SnapshotNode &node) {
  uint32_t operand = node.firstOperand, scalar = node.firstScalar;
  AttributeReader reader(node.attributes->words);
  const char *separator = "";
  for (const ArgumentSpec &argument : node.record->arguments) {
    Attribute attribute = reader.next();
    if (attribute.tag == Tag::none)
      continue;
    stream << separator << argument.name << "=";
    separator = ", ";
    switch (attribute.tag) {
    case Tag::operand:
      printRef(stream, graph, graph.operands[operand++]);
      break;
    case Tag::operandList:
    case Tag::optionalOperandList:
      stream << "[";
      for (uint32_t i = 0; i < attribute.count; ++i) {
        stream << (i ? ", " : "");
        if (attribute.tag == Tag::optionalOperandList &&
            !attribute.isPresent(i))
          stream << "None";
        else
          printRef(stream, graph, graph.operands[operand++]);
      }
      stream << "]";
      break;
    case Tag::dynamicInt:
    case Tag::dynamicFloat:
    case Tag::numberTensor:
      stream << "scalar" << scalar++;
      break;
    case Tag::dynamicIntegers:
      stream << "[";
      for (uint32_t i = 0; i < attribute.count; ++i)
        stream << (i ? ", " : "") << "scalar" << scalar++;
      stream << "]";
      break;
    default:
      printAttribute(stream, attribute);
    }
  }
}

std::string escaped(const std::string &text) {
  std::string result;
  for (char c : text) {
    if (c == '"' || c == '\\')
      result += '\\';
    result += c;
  }
  return result;
}

} // namespace

std::string torch_ltc::nodeText(const GraphSnapshot &graph, size_t position) {
  const SnapshotNode &node = graph.nodes[position];
  std::ostringstream stream;
  for (size_t i = 0; i < node.shapes.size(); ++i)
    stream << (i ? ", " : "") << node.shapes[i].to_string();
  if (!node.record) {
    const SnapshotParameter &parameter = graph.parameters[node.parameter];
    stream << " parameter " << node.parameter;
    if (!parameter.name.empty())
      stream << " \"" << parameter.name << "\"";
    if (parameter.donatable)
      stream << " (donatable)";
    return stream.str();
  }
  stream << " " << node.record->name << "(";
  printArguments(stream, graph, node);
  stream << ")";
  if (node.location)
    stream << "  # " << shortText(node.location);
  if (node.modulePath)
    stream << " " << modulePathText(node.modulePath);
  return stream.str();
}

std::string torch_ltc::graphText(const GraphSnapshot &graph) {
  std::ostringstream stream;
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    stream << "%" << i << " = " << nodeText(graph, i) << "\n";
  stream << "return";
  for (size_t i = 0; i < graph.results.size(); ++i) {
    stream << (i ? ", " : " ");
    printRef(stream, graph, graph.results[i]);
  }
  stream << "\n";
  return stream.str();
}

std::string torch_ltc::graphDot(const GraphSnapshot &graph) {
  std::ostringstream stream;
  stream << "digraph \"" << graph.name << "\" {\n";
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const SnapshotNode &node = graph.nodes[i];
    stream << "  n" << i << " [label=\"" << escaped(nodeText(graph, i)) << "\""
           << (node.record ? "" : ", shape=box") << "]\n";
    for (uint32_t k = 0; k < node.numOperands; ++k)
      stream << "  n" << graph.operands[node.firstOperand + k].position
             << " -> n" << i << "\n";
  }
  for (size_t i = 0; i < graph.results.size(); ++i)
    stream << "  r" << i << " [label=\"result " << i << "\", shape=box]\n  n"
           << graph.results[i].position << " -> r" << i << "\n";
  stream << "}\n";
  return stream.str();
}
