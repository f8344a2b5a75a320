//===- attributes.h - Non-tensor arguments of a node ------------*- C++ -*-===//
//
// The non-tensor arguments of one op call, encoded as a flat list of words, one
// entry for each argument of the schema:
//
//   entry  = header payload*        header = tag | (small << 8) | (count << 32)
//
// `aten::sum.dim_IntList(x, [1], keepdim=False, dtype=None)` is
//
//   operand                         x is the node's first operand
//   integers, count 1 | 1           dim
//   boolean, small 0                keepdim
//   none                            dtype
//
// Values that change from step to step are not in the words: the entry is, for
// example, `dynamicFloat`, and the node holds the number (`OpNode::scalars`),
// which becomes a dynamic scalar of the program. The words are hashed, interned
// and compared.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_IR_ATTRIBUTES_H
#define TORCH_LTC_IR_ATTRIBUTES_H

#include "ir/hash.h"

#include <c10/util/ArrayRef.h>
#include <c10/util/SmallVector.h>

#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace torch_ltc {

enum class Tag : uint8_t {
  none,
  operand,             // the next operand
  operandList,         // the next `count` operands
  optionalOperandList, // count entries; payload: bit mask of those present
  integer,             // payload: value
  floating,            // payload: bits of the double
  boolean,             // small: value
  integers,            // count payload words
  floatings,           // count payload words
  booleans,            // count payload words
  string,              // count: bytes, packed in payload words
  dtype,               // payload: at::ScalarType
  dynamicInt,          // the next dynamic scalar
  dynamicFloat,        // the next dynamic scalar
  numberTensor,        // the next dynamic scalar as a rank-0 tensor;
                       // small: at::ScalarType; count: bit 0 for a float,
                       // bit 1 for a wrapped number, bit 2 for a bool
  dynamicIntegers      // count: number of dynamic scalars
};

using Word = int64_t;

class AttributeWriter {
public:
  void header(Tag tag, uint32_t count = 0, uint8_t small = 0) {
    words.push_back(
        Word(uint64_t(tag) | uint64_t(small) << 8 | uint64_t(count) << 32));
  }
  void word(Word value) { words.push_back(value); }
  void none() { header(Tag::none); }
  void operand() { header(Tag::operand); }
  void integer(int64_t value) {
    header(Tag::integer);
    word(value);
  }
  void floating(double value) {
    header(Tag::floating);
    word(std::bit_cast<Word>(value));
  }
  void boolean(bool value) { header(Tag::boolean, 0, value); }
  void integers(c10::ArrayRef<int64_t> values) {
    header(Tag::integers, uint32_t(values.size()));
    words.append(values.begin(), values.end());
  }
  void string(const std::string &text);

  c10::SmallVector<Word, 32> words;
};

/// One entry, decoded.
struct Attribute {
  Tag tag;
  uint8_t small;
  uint32_t count;
  const Word *payload;

  int64_t integer() const { return payload[0]; }
  double floating() const { return std::bit_cast<double>(payload[0]); }
  bool boolean() const { return small != 0; }
  c10::ArrayRef<int64_t> integers() const { return {payload, count}; }
  double floatingAt(size_t i) const {
    return std::bit_cast<double>(payload[i]);
  }
  bool isPresent(size_t i) const { return payload[i / 64] >> (i % 64) & 1; }
  std::string string() const {
    return std::string(reinterpret_cast<const char *>(payload), count);
  }
};

class AttributeReader {
public:
  explicit AttributeReader(c10::ArrayRef<Word> words)
      : position(words.begin()), end(words.end()) {}
  bool atEnd() const { return position == end; }
  /// Points to the next entry's header.
  const Word *current() const { return position; }
  Attribute next();

private:
  const Word *position, *end;
};

/// Immutable words with their hash. Equal lists are usually one object.
struct AttributeList {
  std::vector<Word> words;
  Hash128 hash;
};
using AttributeListPtr = std::shared_ptr<const AttributeList>;

/// Returns a shared list of `words`, with a hash of them and of `opId`, the
/// op's identifier.
AttributeListPtr internAttributes(uint64_t opId, c10::ArrayRef<Word> words);

} // namespace torch_ltc

#endif // TORCH_LTC_IR_ATTRIBUTES_H
