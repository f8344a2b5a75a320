//===- status.h - Result type shared by the C APIs ----------------*- C -*-===//
//
// Every fallible function of the C APIs returns an `LtcStatus`: NULL means
// success; anything else owns a one-sentence error message for the user and
// must be released with `ltcStatusDestroy`. No function of the C APIs throws or
// aborts on bad input.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_C_STATUS_H
#define TORCH_LTC_C_STATUS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LTC_EXPORT __attribute__((visibility("default")))

/// NULL on success, otherwise an owned error.
typedef struct LtcStatusStorage *LtcStatus;

/// The error's text in UTF-8, valid until the status is destroyed. `status`
/// must not be NULL.
LTC_EXPORT const char *ltcStatusMessage(LtcStatus status);

/// Releases an error; NULL is allowed.
LTC_EXPORT void ltcStatusDestroy(LtcStatus status);

/// Creates an error that owns a copy of `message` (for code that implements a C
/// API).
LTC_EXPORT LtcStatus ltcStatusCreate(const char *message);

/// Bytes owned by the library; release them with `ltcBytesDestroy`. A NUL byte
/// follows the last of the `size` bytes, so that text can be used as a C
/// string.
typedef struct {
  char *data;
  size_t size;
} LtcBytes;

LTC_EXPORT void ltcBytesDestroy(LtcBytes bytes);

/// Creates an owned copy of `size` bytes (for code that implements a C API).
LTC_EXPORT LtcBytes ltcBytesCreate(const char *data, size_t size);

/// Element types of tensors in all C APIs and in the executable format. The
/// numbers are stored on disk, so existing ones must not change.
typedef enum {
  LTC_DTYPE_BOOL = 0, // one byte, 0 or 1
  LTC_DTYPE_UINT8 = 1,
  LTC_DTYPE_INT8 = 2,
  LTC_DTYPE_INT16 = 3,
  LTC_DTYPE_INT32 = 4,
  LTC_DTYPE_INT64 = 5,
  LTC_DTYPE_FLOAT16 = 6,
  LTC_DTYPE_BFLOAT16 = 7,
  LTC_DTYPE_FLOAT32 = 8,
  LTC_DTYPE_FLOAT64 = 9,
  LTC_DTYPE_COMPLEX64 = 10, // a pair of float32: real and imaginary part
  LTC_DTYPE_COMPLEX128 = 11
} LtcDType;

#ifdef __cplusplus
}
#endif

#endif // TORCH_LTC_C_STATUS_H
