//===- op_error.cpp - Errors with the op and the user's line --------------===//

#include "events/op_error.h"

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
  // Not what(): shape inference adds the op's name there as well.
  std::string text = error.msg() + opSuffix(opName);
  c10::SourceLocation here{__func__, __FILE__, uint32_t(__LINE__)};
  if (dynamic_cast<const c10::IndexError *>(&error))
    throw c10::IndexError(here, text);
  if (dynamic_cast<const c10::TypeError *>(&error))
    throw c10::TypeError(here, text);
  if (dynamic_cast<const c10::ValueError *>(&error))
    throw c10::ValueError(here, text);
  if (dynamic_cast<const c10::LinAlgError *>(&error))
    throw c10::LinAlgError(here, text);
  if (dynamic_cast<const c10::NotImplementedError *>(&error))
    throw c10::NotImplementedError(here, text);
  throw c10::Error(here, text);
}
