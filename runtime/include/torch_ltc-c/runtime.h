//===- runtime.h - C API of the runtime ---------------------------*- C -*-===//
//
// Loads serialized executables (runtime/proto/executable.proto), runs them on
// the caller's buffers, and maintains the caches of programs and kernels in
// memory and on disk. Thread-safe: any function may be called from any thread,
// and several threads may run one executable at once (each run takes an arena
// from a pool).
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_C_RUNTIME_H
#define TORCH_LTC_C_RUNTIME_H

#include "torch_ltc-c/status.h"

#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

//===----------------------------------------------------------------------===//
// Executables
//===----------------------------------------------------------------------===//

typedef struct LtcExecutableStorage *LtcExecutable;

/// Parses and loads `size` bytes of a serialized `Executable`: links the
/// kernels' objects and creates library primitives. Fails with a one-sentence
/// error if the bytes are corrupt, have a different format version, or need CPU
/// features that this machine lacks.
LTC_EXPORT LtcStatus ltcExecutableLoad(const char *data, size_t size,
                                       LtcExecutable *executable);
/// Values for a general executable (`GeneralForm` in executable.proto).
typedef struct {
  const int64_t *symbols; // the value of each symbol
  size_t num_symbols;
  /// The values in this trace of the numbers that the compiler received as
  /// `LtcSizeSamples::checked`.
  const int64_t *checked;
  size_t num_checked;
} LtcSizes;

/// Creates an executable for `sizes` from `general`, which can't be run itself.
/// The bound executable shares the kernels of `general`, and stays valid when
/// `general` is destroyed. Fails with a one-sentence error if the program isn't
/// valid for the sizes.
LTC_EXPORT LtcStatus ltcExecutableBind(LtcExecutable general,
                                       const LtcSizes *sizes,
                                       LtcExecutable *bound);
/// Fails if a program that ltcProgramsSymbolicStage wrote isn't valid for the
/// sizes. The `size` bytes at `form` are the `checks` of that program.
LTC_EXPORT LtcStatus ltcSizesCheck(const char *form, size_t size,
                                   const LtcSizes *sizes);
LTC_EXPORT void ltcExecutableDestroy(LtcExecutable executable);

typedef struct {
  LtcDType dtype;
  size_t rank;
  const int64_t *sizes; // owned by the executable
  const char *name;     // "" if unknown; owned by the executable
  size_t bytes;
} LtcTensorInfo;

/// Where the bytes of an output are; see `Output` in executable.proto.
typedef enum {
  LTC_OUTPUT_CALLER = 0,   // the caller supplies memory
  LTC_OUTPUT_DONATED = 1,  // written into the buffer of parameter `parameter`
  LTC_OUTPUT_FORWARDED = 2 // equals parameter `parameter`, unchanged
} LtcOutputPlace;

typedef struct {
  LtcTensorInfo type;
  LtcOutputPlace place;
  size_t parameter;          // for DONATED and FORWARDED
  int64_t updated_parameter; // the parameter that this output updates, or -1
} LtcOutputInfo;

LTC_EXPORT size_t ltcExecutableNumParameters(LtcExecutable executable);
LTC_EXPORT LtcTensorInfo ltcExecutableParameter(LtcExecutable executable,
                                                size_t index);
LTC_EXPORT size_t ltcExecutableNumScalars(LtcExecutable executable);
/// Whether the scalar parameter is a float (1) or an int (0).
LTC_EXPORT int ltcExecutableScalarIsFloat(LtcExecutable executable,
                                          size_t index);
LTC_EXPORT size_t ltcExecutableNumOutputs(LtcExecutable executable);
LTC_EXPORT LtcOutputInfo ltcExecutableOutput(LtcExecutable executable,
                                             size_t index);
/// Bytes of the arena that one run uses.
LTC_EXPORT size_t ltcExecutableArenaBytes(LtcExecutable executable);
/// Bytes that this process has mapped for arenas, including idle ones:
/// consecutive runs share one arena, as large as the largest program needs.
LTC_EXPORT size_t ltcArenaPoolBytes(void);
/// Bytes of the packed weights that executables cache.
LTC_EXPORT size_t ltcPackedWeightBytes(void);
LTC_EXPORT size_t ltcExecutableNumKernels(LtcExecutable executable);
LTC_EXPORT size_t ltcExecutableNumCommands(LtcExecutable executable);

/// Describes a command to users; unknown strings are "". The executable owns
/// the strings and the array.
typedef struct {
  const char *name;         // "aten.add+aten.relu", "matmul 512x256x256", ...
  const char *location;     // "train.py:31"
  const char *module_path;  // "encoder.layer.0"
  const char *result_types; // "f32[4,5]"
  const uint32_t *nodes;    // ids (LtcLocation::node) of the computed ops
  size_t num_nodes;
} LtcCommandInfo;
LTC_EXPORT LtcCommandInfo ltcExecutableCommand(LtcExecutable executable,
                                               size_t index);

/// The value of a scalar parameter; `ltcExecutableScalarIsFloat` determines
/// which member is used.
typedef union {
  int64_t as_int;
  double as_float;
} LtcScalar;

typedef struct {
  /// One pointer for each tensor parameter. A donated parameter is overwritten.
  void *const *parameters;
  /// One value for each scalar parameter.
  const LtcScalar *scalars;
  /// One pointer for each output; ignored for donated and forwarded outputs.
  void *const *outputs;
  /// Number of threads to use, at least 1. The backend passes
  /// torch.get_num_threads().
  int num_threads;
  /// Optional: CPU-time clock (pthread_getcpuclockid) of the thread that
  /// requested the run and keeps computing meanwhile. If that thread is busy
  /// and there are at most `num_threads` processors, a program without long
  /// commands leaves it a processor.
  const clockid_t *caller_clock;
  /// Optional: an array of ltcExecutableNumCommands elements that receives the
  /// nanoseconds of each command.
  int64_t *command_nanoseconds;
  /// Optional: called on the running thread before (`begins` = 1) and after
  /// each command; not called after a command that failed.
  void (*command_event)(size_t index, int begins, void *user_data);
  void *command_event_user_data;
  /// Optional: called with a command's index for an error or a host call;
  /// returns the user's line of this run ("train.py:31"), or "". Without it,
  /// the line recorded at compilation is used.
  const char *(*command_location)(size_t index, void *user_data);
  void *command_location_user_data;
  /// Optional: after an error, 1 if the donated parameters still have their
  /// values from before the run, 0 if some may have been overwritten.
  int *parameters_intact;
  /// Optional: an id of each tensor parameter's contents. Equal ids mean equal
  /// bytes; 0 means that the bytes may have changed. A convolution weight whose
  /// contents have the same id in two consecutive runs is cached in the
  /// library's packed order.
  const uint64_t *parameter_contents;
} LtcRunArguments;

/// Runs the program on the calling thread (parallel parts on libgomp's pool).
LTC_EXPORT LtcStatus ltcExecutableRun(LtcExecutable executable,
                                      const LtcRunArguments *arguments);

//===----------------------------------------------------------------------===//
// Ops that the host computes
//===----------------------------------------------------------------------===//

typedef struct {
  LtcDType dtype;
  size_t rank;
  const int64_t *sizes;
  void *data; // row-major; may be NULL only if there are no elements
} LtcHostTensor;

/// One call of a host op. `arguments` has one item for each argument of the op,
/// separated by ';':
///
///   n        none
///   t        the next input; if the argument is a number, the input's element
///   l3       a list of the next 3 inputs
///   o101     a list of 3 optional tensors: the next input, none, the next
///   input i-5      an integer b1       a boolean d0x1p-3  a floating-point
///   number smean    a string I1,2     a list of integers or booleans D0x1p0 a
///   list of floating-point numbers
///
/// All strings and arrays belong to the caller.
typedef struct {
  const char *op;
  const char *arguments;
  size_t num_inputs;
  const LtcHostTensor *inputs; // read-only
  size_t num_outputs;
  const LtcHostTensor *outputs; // all of them must be written
  const char *location;         // the user's line, or ""
} LtcHostCall;

/// Computes a host call; returns NULL or an owned error. Called on the thread
/// that runs the program, possibly by several threads at once; must not throw.
typedef LtcStatus (*LtcHostFunction)(const LtcHostCall *call);

/// Sets the function that computes the host calls of all programs in the
/// process. Programs without host calls don't need it.
LTC_EXPORT void ltcSetHostFunction(LtcHostFunction function);

//===----------------------------------------------------------------------===//
// Caches
//===----------------------------------------------------------------------===//

/// Programs (serialized executables, keyed by the trace's hash) and kernels
/// (objects, keyed by the kernel IR's hash) live in one store: an in-memory
/// cache, backed by a directory that processes share.
typedef struct LtcCacheStorage *LtcCache;

typedef enum { LTC_CACHE_PROGRAM = 0, LTC_CACHE_KERNEL = 1 } LtcCacheKind;

typedef struct {
  /// NULL or "": memory only. The directory is created if it doesn't exist.
  const char *directory;
  /// Beyond this size, least recently used entries are removed; 0: no limit.
  uint64_t max_bytes;
  /// Called with one sentence, once for each kind of problem: an entry is
  /// ignored, or the directory can't be used or written to (for example,
  /// because the disk is full). The in-memory cache continues to work. May be
  /// NULL.
  void (*warn)(const char *message, void *user_data);
  void *user_data;
  /// Paths of the libraries, besides this one, whose code affects what is
  /// compiled. Entries stored with different builds of these libraries aren't
  /// found. May be NULL.
  const char *const *libraries;
  size_t num_libraries;
} LtcCacheOptions;

LTC_EXPORT LtcStatus ltcCacheCreate(const LtcCacheOptions *options,
                                    LtcCache *cache);
LTC_EXPORT void ltcCacheDestroy(LtcCache cache);

/// Looks up an entry. On a hit, sets `*found` to 1 and `*value` to an owned
/// copy. If a program's key begins with 16 hexadecimal digits, its file is
/// called "program-<these digits>-...". `key` is any byte string;
/// `ltcCacheSalt` and the builds of the libraries are added to it. An entry
/// that is truncated, corrupt or from a different version is ignored, removed,
/// and reported through `warn`.
LTC_EXPORT LtcStatus ltcCacheLookup(LtcCache cache, LtcCacheKind kind,
                                    const char *key, size_t key_size,
                                    LtcBytes *value, int *found);
LTC_EXPORT LtcStatus ltcCacheStore(LtcCache cache, LtcCacheKind kind,
                                   const char *key, size_t key_size,
                                   const char *value, size_t value_size);

typedef struct {
  uint64_t memory_hits, disk_hits, misses, stores, evictions, rejected;
  uint64_t disk_bytes; // bytes in the directory when last scanned
} LtcCacheStatistics;
LTC_EXPORT LtcCacheStatistics ltcCacheGetStatistics(LtcCache cache);

/// Format version, build of this library, LLVM version, and name and features
/// of the target CPU as one string: part of every key.
LTC_EXPORT const char *ltcCacheSalt(void);

/// Prepares the process's OpenMP threads for a step that uses `num_threads` of
/// them. To be called by the thread that schedules the step.
///
/// libgomp's threads spin while they wait, unless the process has more of them
/// than processors: then all of them sleep after each parallel command, and
/// waking one takes longer than most commands. So, if the calling thread's
/// waiting OpenMP threads together with those of the step outnumber the
/// processors, this function ends the former; libgomp creates new ones when the
/// calling thread next needs them. If other processes use the same processors,
/// this function makes all threads sleep, because a spinning thread takes time
/// from the thread that it waits for (lib/ProcessorContention.h).
LTC_EXPORT void ltcPrepareThreads(int num_threads);

/// Name and LLVM feature string of the target CPU; by default, those of the
/// host. `TORCH_LTC_CPU` of the configuration table overrides them through
/// `ltcSetTargetCpu` before the first compilation (features "" selects those of
/// the named CPU).
LTC_EXPORT const char *ltcTargetCpuName(void);
LTC_EXPORT const char *ltcTargetCpuFeatures(void);
LTC_EXPORT void ltcSetTargetCpu(const char *name, const char *features);

#ifdef __cplusplus
}
#endif

#endif // TORCH_LTC_C_RUNTIME_H
