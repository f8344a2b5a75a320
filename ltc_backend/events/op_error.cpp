//===- op_error.cpp - Errors with the op and the user's line --------------===//

#include "events/op_error.h"

#include "events/error_kind.h"
#include "source/source_location.h"

using namespace torch_ltc;

std::string torch_ltc::opSuffix(const std::string &opName) {
  std::string text = " [" + opName + " on device 'lazy'";
  if (LocationId id = captureLocation()) {
    Location location = locationOf(id);
    text += ", at " + location.file + ":" + std::to_string(location.line);
  }
  return text + "]";
}

void torch_ltc::rethrowWithOp(const c10::Error &error,
                              const std::string &opName) {
  // Uses msg() instead of what(), because shape inference has already added the
  // op's name to what().
  throwError(kindOf(error), error.msg() + opSuffix(opName));
}
