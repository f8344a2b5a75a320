//===- IRCompiler.h - Kernel objects from LLVM IR text --------------------===//

#ifndef TORCH_LTC_RUNTIME_TEST_IRCOMPILER_H
#define TORCH_LTC_RUNTIME_TEST_IRCOMPILER_H

#include <string>

namespace torch_ltc::runtime::test {

/// The relocatable ELF object of a module in LLVM's textual IR, compiled for
/// `cpu` with `features` in LLVM's spelling.
std::string compileIR(const std::string &text,
                      const std::string &cpu = "x86-64",
                      const std::string &features = "");

} // namespace torch_ltc::runtime::test

#endif // TORCH_LTC_RUNTIME_TEST_IRCOMPILER_H
