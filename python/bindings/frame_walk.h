//===- frame_walk.h - The calling thread's Python frames --------*- C++ -*-===//

#ifndef TORCH_LTC_BINDINGS_FRAME_WALK_H
#define TORCH_LTC_BINDINGS_FRAME_WALK_H

#include "bindings.h"

// For CPython 3.11 only: frames of other versions have a different layout. With
// other versions, frame_capture.cpp uses the public API.
#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
#define TORCH_LTC_READS_FRAMES 1
#define Py_BUILD_CORE 1
extern "C" {
#include <internal/pycore_frame.h>
}
#else
#define TORCH_LTC_READS_FRAMES 0
#endif

#if TORCH_LTC_READS_FRAMES
namespace torch_ltc {

/// A Python frame of the calling thread. Walking the frames, from the innermost
/// outwards, needs neither the GIL nor a frame object, whose creation costs
/// more than tracing an op. The thread's own frames don't change during the
/// walk.
class PythonFrame {
public:
  static PythonFrame innermost(PyThreadState *thread) {
    return PythonFrame(thread->cframe->current_frame);
  }

  explicit operator bool() const { return frame; }
  PyCodeObject *code() const { return frame->f_code; }
  /// The byte offset of the current instruction, like PyFrame_GetLasti.
  int instruction() const {
    return _PyInterpreterFrame_LASTI(frame) * int(sizeof(_Py_CODEUNIT));
  }
  PythonFrame outer() const { return PythonFrame(frame->previous); }

private:
  /// Skips frames that haven't started yet, because they have no line;
  /// PyFrame_GetBack does the same.
  explicit PythonFrame(_PyInterpreterFrame *inner) : frame(inner) {
    while (frame && _PyFrame_IsIncomplete(frame))
      frame = frame->previous;
  }

  _PyInterpreterFrame *frame;
};

} // namespace torch_ltc
#endif

#endif // TORCH_LTC_BINDINGS_FRAME_WALK_H
