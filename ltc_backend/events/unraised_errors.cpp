//===- unraised_errors.cpp - Errors that no read has raised ---------------===//

#include "events/unraised_errors.h"

#include "config/log.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

using namespace torch_ltc;

static std::atomic<bool> isUnraised{false};

static void setExitCode(int status, void *) {
  if (status != 0 || !isUnraised)
    return;
  std::fflush(nullptr);
  _exit(EXIT_FAILURE);
}

void torch_ltc::watchExitCode() { on_exit(setExitCode, nullptr); }

void torch_ltc::reportUnraisedError(const std::string &sentence) {
  isUnraised = true;
  log(LogLevel::Error, sentence);
}
