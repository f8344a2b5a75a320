//===- Status.cpp - Result type shared by the C APIs ----------------------===//

#include "torch_ltc-c/status.h"

#include <cstdlib>
#include <cstring>
#include <string>

struct LtcStatusStorage {
  std::string message;
};

const char *ltcStatusMessage(LtcStatus status) {
  return status->message.c_str();
}

void ltcStatusDestroy(LtcStatus status) { delete status; }

LtcStatus ltcStatusCreate(const char *message) {
  return new LtcStatusStorage{message};
}

void ltcBytesDestroy(LtcBytes bytes) { std::free(bytes.data); }

LtcBytes ltcBytesCreate(const char *data, size_t size) {
  char *copy = static_cast<char *>(std::malloc(size + 1));
  if (!copy)
    return {nullptr, 0};
  // `data` may be NULL if there is nothing to copy.
  if (size)
    std::memcpy(copy, data, size);
  copy[size] = '\0';
  return {copy, size};
}
