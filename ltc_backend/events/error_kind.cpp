//===- error_kind.cpp - Python exception class of an error ----------------===//

#include "events/error_kind.h"

using namespace torch_ltc;

ErrorKind torch_ltc::kindOf(const c10::Error &error) {
  if (dynamic_cast<const c10::IndexError *>(&error))
    return ErrorKind::Index;
  if (dynamic_cast<const c10::TypeError *>(&error))
    return ErrorKind::Type;
  if (dynamic_cast<const c10::ValueError *>(&error))
    return ErrorKind::Value;
  if (dynamic_cast<const c10::LinAlgError *>(&error))
    return ErrorKind::LinAlg;
  if (dynamic_cast<const c10::NotImplementedError *>(&error))
    return ErrorKind::NotImplemented;
  return ErrorKind::Runtime;
}

void torch_ltc::throwError(ErrorKind kind, const std::string &text) {
  c10::SourceLocation here{__func__, __FILE__, uint32_t(__LINE__)};
  switch (kind) {
  case ErrorKind::Index:
    throw c10::IndexError(here, text);
  case ErrorKind::Type:
    throw c10::TypeError(here, text);
  case ErrorKind::Value:
    throw c10::ValueError(here, text);
  case ErrorKind::LinAlg:
    throw c10::LinAlgError(here, text);
  case ErrorKind::NotImplemented:
    throw c10::NotImplementedError(here, text);
  case ErrorKind::Runtime:
    break;
  }
  throw c10::Error(here, text);
}
