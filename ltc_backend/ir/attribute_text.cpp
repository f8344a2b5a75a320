//===- attribute_text.cpp - An op's arguments as text ---------------------===//

#include "ir/node.h"

#include <c10/core/ScalarType.h>

#include <sstream>

using namespace torch_ltc;

namespace {

void printNumbers(std::ostream &stream, const Attribute &attribute) {
  stream << "[";
  for (size_t i = 0; i < attribute.count; ++i) {
    stream << (i ? ", " : "");
    if (attribute.tag == Tag::floatings)
      stream << attribute.floatingAt(i);
    else if (attribute.tag == Tag::booleans)
      stream << (attribute.payload[i] ? "True" : "False");
    else
      stream << attribute.payload[i];
  }
  stream << "]";
}

/// Prints the argument's value. Prints nothing and returns false for a tensor
/// or a list of tensors.
bool printValue(std::ostream &stream, const Attribute &attribute) {
  switch (attribute.tag) {
  case Tag::none:
    stream << "None";
    return true;
  case Tag::operand:
  case Tag::operandList:
  case Tag::optionalOperandList:
    return false;
  case Tag::integer:
    stream << attribute.integer();
    return true;
  case Tag::floating:
    stream << attribute.floating();
    return true;
  case Tag::boolean:
    stream << (attribute.boolean() ? "True" : "False");
    return true;
  case Tag::integers:
  case Tag::floatings:
  case Tag::booleans:
    printNumbers(stream, attribute);
    return true;
  case Tag::string:
    stream << '"' << attribute.string() << '"';
    return true;
  case Tag::dtype:
    stream << c10::toString(c10::ScalarType(attribute.integer()));
    return true;
  case Tag::dynamicInt:
  case Tag::dynamicFloat:
    stream << "scalar parameter";
    return true;
  case Tag::dynamicIntegers:
    stream << attribute.count << " scalar parameters";
    return true;
  case Tag::numberTensor:
    stream << "scalar parameter as "
           << c10::toString(c10::ScalarType(attribute.small));
    return true;
  }
  return false;
}

} // namespace

std::string torch_ltc::attributeText(const OpNode &node) {
  std::ostringstream stream;
  AttributeReader reader(node.attributes()->words);
  const char *separator = "";
  for (const ArgumentSpec &argument : node.record().arguments) {
    if (reader.atEnd())
      break;
    Attribute attribute = reader.next();
    std::ostringstream value;
    if (!printValue(value, attribute))
      continue;
    stream << separator << argument.name << "=" << value.str();
    separator = ", ";
  }
  return stream.str();
}
