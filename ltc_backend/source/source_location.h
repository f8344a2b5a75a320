//===- source_location.h - The user's Python line ---------------*- C++ -*-===//
//
// The library doesn't link Python: the bindings install a function that finds
// the innermost frame of the user's code. A location is represented by an id;
// its text is looked up on demand.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_SOURCE_SOURCE_LOCATION_H
#define TORCH_LTC_SOURCE_SOURCE_LOCATION_H

#include <cstdint>
#include <string>

namespace torch_ltc {

/// The id of a location; 0 if it is unknown.
using LocationId = uint32_t;

struct Location {
  std::string file;
  int line = 0;
};

/// Returns the location of the calling thread's innermost user frame.
using FrameCapture = LocationId (*)();
void setFrameCapture(FrameCapture capture);

/// Returns the id of a file and line; equal pairs get the same id.
LocationId internLocation(const std::string &file, int line);
Location locationOf(LocationId id);

/// Returns the location of the calling thread's innermost user frame,
/// regardless of the configuration. Used for messages and logs.
LocationId captureLocation();
/// `captureLocation()` if option source_info is on, otherwise 0.
LocationId captureLocationIfWanted();
/// Returns "train.py:31", with only the last component of the file's path, or
/// "" for an unknown location.
std::string shortText(LocationId id);
/// Returns " (at /home/me/train.py:31)", which is to be appended to messages,
/// or "" for an unknown location.
std::string messageSuffix(LocationId id);

/// The id of an interned module path ("encoder.layer.0"); 0 for none.
using ModulePathId = uint32_t;
void pushModulePath(const std::string &path);
void popModulePath();
/// The calling thread's innermost module path.
ModulePathId currentModulePath();
std::string modulePathText(ModulePathId id);

} // namespace torch_ltc

#endif // TORCH_LTC_SOURCE_SOURCE_LOCATION_H
