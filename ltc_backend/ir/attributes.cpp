//===- attributes.cpp - Non-tensor arguments of a node --------------------===//

#include "ir/attributes.h"

#include <cstring>

using namespace torch_ltc;

void AttributeWriter::string(const std::string &text) {
  header(Tag::string, uint32_t(text.size()));
  size_t begin = words.size();
  words.resize(begin + (text.size() + 7) / 8, 0);
  std::memcpy(words.data() + begin, text.data(), text.size());
}

Attribute AttributeReader::next() {
  uint64_t header = uint64_t(*position++);
  Attribute attribute{Tag(header & 255), uint8_t(header >> 8),
                      uint32_t(header >> 32), position};
  switch (attribute.tag) {
  case Tag::integer:
  case Tag::floating:
  case Tag::dtype:
    ++position;
    break;
  case Tag::integers:
  case Tag::floatings:
  case Tag::booleans:
    position += attribute.count;
    break;
  case Tag::optionalOperandList:
    position += (attribute.count + 63) / 64;
    break;
  case Tag::string:
    position += (attribute.count + 7) / 8;
    break;
  default:
    break;
  }
  return attribute;
}

AttributeListPtr torch_ltc::internAttributes(uint64_t opId,
                                             c10::ArrayRef<Word> words) {
  Hash128 hash = hashBytes(words.data(), words.size() * sizeof(Word), opId);
  // The cache is direct-mapped and per thread. A training loop requests the
  // same few hundred lists repeatedly. A loop that always requests new lists
  // (for example, for slices at a running position) can't make the cache grow.
  constexpr size_t slots = 2048;
  thread_local std::vector<AttributeListPtr> cache(slots);
  AttributeListPtr &slot = cache[hash.low % slots];
  if (slot && slot->hash == hash)
    return slot;
  auto list = std::make_shared<AttributeList>();
  list->words = words.vec();
  list->hash = hash;
  slot = list;
  return list;
}
