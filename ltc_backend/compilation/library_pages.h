//===- library_pages.h - Memory of libraries that are idle ------*- C++ -*-===//
//
// MLIR's and LLVM's code is over 100 MB of a process's resident memory once a
// program has been compiled, and a steady loop never calls it again. Its pages
// are in the files: they can be given back and come again when they are read.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_COMPILATION_LIBRARY_PAGES_H
#define TORCH_LTC_COMPILATION_LIBRARY_PAGES_H

namespace torch_ltc {

/// A program was made: the compiler or the linker has been used.
void noteCompilerUse();

/// Called after each step, by the thread that ran it. After some steps without
/// a new program gives back the pages of the compiler's and the runtime's
/// libraries and of those that came with them (read-only mappings of files),
/// and cached buffers: once, in a few milliseconds.
void giveBackIdleLibraries();

} // namespace torch_ltc

#endif // TORCH_LTC_COMPILATION_LIBRARY_PAGES_H
