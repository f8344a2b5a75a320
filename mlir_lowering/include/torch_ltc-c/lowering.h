//===- lowering.h - C API of the compiler -------------------------*- C -*-===//
//
// Builds a torch-dialect module op by op, checks the backend contract, lowers
// it stage by stage, and compiles it to a serialized executable
// (runtime/proto/executable.proto). Doesn't depend on PyTorch.
//
// Threads: an `LtcCompiler` may be shared; an `LtcProgram` may be used by one
// thread at a time.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_C_LOWERING_H
#define TORCH_LTC_C_LOWERING_H

#include "torch_ltc-c/size_stand_ins.h"
#include "torch_ltc-c/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct LtcCompilerStorage *LtcCompiler;
typedef struct LtcProgramStorage *LtcProgram;

/// Creates a compiler, which holds an MLIR context with the project's dialects.
LTC_EXPORT LtcStatus ltcCompilerCreate(LtcCompiler *compiler);
LTC_EXPORT void ltcCompilerDestroy(LtcCompiler compiler);

/// Releases the memory that earlier programs left in the context (some
/// megabytes). The next program takes some milliseconds longer; existing
/// programs remain valid.
LTC_EXPORT void ltcCompilerReleaseMemory(LtcCompiler compiler);

/// While `cancelled` isn't 0, all compilations of the process fail before their
/// next kernel. Set at process exit, when nobody needs the programs that
/// threads are still compiling.
LTC_EXPORT void ltcSetCompilationsCancelled(int cancelled);

/// The caller's adapter to the runtime's cache of kernel objects. `lookup`
/// returns 1 and an owned copy of the object on a hit, otherwise 0.
typedef struct {
  int (*lookup)(const char *key, size_t key_size, LtcBytes *object,
                void *user_data);
  void (*store)(const char *key, size_t key_size, const char *object,
                size_t object_size, void *user_data);
  void *user_data;
} LtcKernelCache;

/// Sets the cache for kernels. Without a cache (NULL) every kernel is compiled.
LTC_EXPORT void ltcCompilerSetKernelCache(LtcCompiler compiler,
                                          const LtcKernelCache *cache);

//===----------------------------------------------------------------------===//
// Building a program: a function in the torch dialect
//===----------------------------------------------------------------------===//

/// An SSA value of the program under construction. If a function that returns
/// an `LtcValue` fails, the next function that returns an `LtcStatus` returns
/// the error.
typedef struct {
  uint32_t id;
} LtcValue;

typedef struct {
  LtcDType dtype;
  size_t rank;
  const int64_t *sizes;
} LtcTensorType;

/// Source of an op; any member may be NULL or 0.
typedef struct {
  const char *file;
  int line;
  const char *module_path; // "encoder.layer.0.attention"
  /// Position of the op in the trace, starting at 1. `LtcCommandInfo::nodes` of
  /// each command that computes the op contains this position.
  unsigned node;
} LtcLocation;

LTC_EXPORT LtcStatus ltcProgramCreate(LtcCompiler compiler, const char *name,
                                      LtcProgram *program);
/// Creates the program in the same MLIR context as `other`, so that both can be
/// samples of one compilation (ltcProgramsCompileGeneral).
LTC_EXPORT LtcStatus ltcProgramCreateInContextOf(LtcProgram other,
                                                 const char *name,
                                                 LtcProgram *program);
LTC_EXPORT void ltcProgramDestroy(LtcProgram program);

/// Parameters become function arguments in the order of these calls; tensor and
/// scalar parameters are numbered separately. `name` may be NULL. If
/// `donatable` isn't 0, the program may reuse the parameter's buffer for a
/// result.
LTC_EXPORT LtcValue ltcProgramAddTensorParameter(LtcProgram program,
                                                 LtcTensorType type,
                                                 const char *name,
                                                 int donatable);
LTC_EXPORT LtcValue ltcProgramAddIntParameter(LtcProgram program);
LTC_EXPORT LtcValue ltcProgramAddFloatParameter(LtcProgram program);

/// Adds a torch.constant op. Equal constants share one value.
LTC_EXPORT LtcValue ltcProgramConstantNone(LtcProgram program);
LTC_EXPORT LtcValue ltcProgramConstantInt(LtcProgram program, int64_t value);
LTC_EXPORT LtcValue ltcProgramConstantFloat(LtcProgram program, double value);
LTC_EXPORT LtcValue ltcProgramConstantBool(LtcProgram program, int value);
LTC_EXPORT LtcValue ltcProgramConstantString(LtcProgram program,
                                             const char *value);
/// Adds a torch.vtensor.literal of `bytes` row-major bytes. Each bool is one
/// byte.
LTC_EXPORT LtcValue ltcProgramConstantTensor(LtcProgram program,
                                             LtcTensorType type,
                                             const void *data, size_t bytes);

/// Element type of a list, which the elements don't determine if the list is
/// empty or if they are optional.
typedef enum {
  LTC_LIST_INT = 0,
  LTC_LIST_FLOAT = 1,
  LTC_LIST_BOOL = 2,
  LTC_LIST_TENSOR = 3,
  LTC_LIST_OPTIONAL_TENSOR = 4
} LtcListKind;

/// Adds a torch.prim.ListConstruct.
LTC_EXPORT LtcValue ltcProgramList(LtcProgram program, LtcListKind kind,
                                   const LtcValue *elements, size_t count);

/// Adds a torch.prim.NumToTensor.Scalar: a rank-0 tensor of `dtype` from an int
/// or float value.
LTC_EXPORT LtcValue ltcProgramNumberToTensor(LtcProgram program,
                                             LtcValue number, LtcDType dtype,
                                             const LtcLocation *location);

/// Appends the op `name` ("aten.add.Tensor", without the "torch." prefix) with
/// one operand for each argument of its schema, in schema order. A name that
/// the dialect doesn't define becomes `torch.operator "torch.aten.foo"`. Writes
/// one value for each result to `results`; all results are tensors. Fails if
/// the operands or results don't match the schema.
LTC_EXPORT LtcStatus ltcProgramAppend(
    LtcProgram program, const char *name, const LtcValue *operands,
    size_t operand_count, const LtcTensorType *result_types,
    size_t result_count, const LtcLocation *location, LtcValue *results);

/// Ends the function, which returns the outputs in this order. A parameter may
/// be an output. `updated_parameters[i]` is the index of the tensor parameter
/// that output `i` updates, or -1; the array may be NULL.
LTC_EXPORT LtcStatus ltcProgramSetOutputs(LtcProgram program,
                                          const LtcValue *outputs,
                                          const int64_t *updated_parameters,
                                          size_t count);

//===----------------------------------------------------------------------===//
// Stages and compilation
//===----------------------------------------------------------------------===//

/// Called with the text of each stage when it is reached ("torch", "linalg",
/// "kernels", "plan", "llvm", "asm") if `LtcCompileOptions.stage_text` is set.
/// `text` is valid only during the call.
typedef void (*LtcStageCallback)(const char *stage, const char *text,
                                 size_t size, void *user_data);

typedef struct {
  LtcStageCallback stage_text; // NULL: stages aren't printed
  void *stage_user_data;
  int verify; // run MLIR's verifier between passes
  /// Number of threads that compile kernels, the caller's included; 0 means 1.
  int threads;
  int print_locations; // `loc(...)` in the stages' texts
} LtcCompileOptions;

typedef struct {
  double torch_seconds, linalg_seconds, kernels_seconds, llvm_seconds;
  size_t ops;              // ops of the torch stage
  size_t kernels;          // distinct kernels
  size_t kernels_compiled; // those that weren't in the kernel cache
  size_t commands;
} LtcCompileStatistics;

/// Lowers the program to an executable. The program is consumed: only
/// `ltcProgramDestroy` may follow. Errors name the op, the rule of the backend
/// contract or the failing stage, and the user's line.
LTC_EXPORT LtcStatus ltcProgramCompile(LtcProgram program,
                                       const LtcCompileOptions *options,
                                       LtcBytes *executable,
                                       LtcCompileStatistics *statistics);

/// Sizes of a general program: for each of the LTC_GENERAL_SAMPLES samples, an
/// array of values.
typedef struct {
  /// The stand-ins of each symbol (size_stand_ins.h).
  const int64_t *symbols[LTC_GENERAL_SAMPLES];
  size_t num_symbols;
  /// Sizes and integers of the traced program. Binding the executable compares
  /// them with those of the trace that is to run, because some may be wrong at
  /// other sizes: for example, a result that is as large as a slice's bound at
  /// the stand-ins may be smaller at other sizes.
  const int64_t *checked[LTC_GENERAL_SAMPLES];
  size_t num_checked;
} LtcSizeSamples;

/// Lowers one program to a general executable. `programs` contains the program
/// at the stand-ins of each sample. These programs differ only in numbers, must
/// share a context (ltcProgramCreateInContextOf), and are consumed. The
/// executable is valid for values of each symbol from 2 to its smallest
/// stand-in, and must be bound to sizes before it runs (ltcExecutableBind).
/// Fails if a number of the lowered program isn't a known function of the
/// sizes.
LTC_EXPORT LtcStatus ltcProgramsCompileGeneral(
    const LtcProgram *programs, const LtcSizeSamples *sizes,
    const LtcCompileOptions *options, LtcBytes *executable,
    LtcCompileStatistics *statistics);

typedef struct {
  /// A name of stages.def except "ir". At "tosa" and "stablehlo", scalar
  /// parameters are rank-0 tensors: i64 for integers, f64 for floats (f32 at
  /// "tosa", which has no f64).
  const char *stage;
  /// Ops ("aten.addmm") that our compiler decomposes, but that remain in stage
  /// "torch" or "linalg", because the compiler that reads the stage supports
  /// them.
  const char *const *legal_ops;
  size_t legal_op_count;
  /// If not 0, the ops that only our compiler lowers are decomposed (stage
  /// "torch"), and the result contains no calls to our libraries (stage
  /// "linalg").
  int portable;
  int print_locations;
  int bytecode; // MLIR bytecode instead of text; not available from "kernels"
                // on
} LtcStageOptions;

/// Writes the program at a stage, as input for another compiler. The program
/// isn't consumed.
LTC_EXPORT LtcStatus ltcProgramStage(LtcProgram program,
                                     const LtcStageOptions *options,
                                     LtcBytes *result);

/// A symbol of a program for all sizes.
typedef struct {
  const char *name;
  int64_t least, most; // the range for which the program is valid
} LtcSizeSymbol;

/// One program at the stand-ins of its symbols (as for
/// ltcProgramsCompileGeneral), and at one more vector of sizes. All of these
/// share an MLIR context (ltcProgramCreateInContextOf) and remain the caller's.
typedef struct {
  const LtcProgram *programs; // LTC_GENERAL_SAMPLES
  const LtcSizeSamples *sizes;
  const LtcSizeSymbol *symbols; // sizes->num_symbols
  /// The program at `other_values` (one value for each symbol). If the symbols
  /// of the program for all sizes are replaced by these values, it must equal
  /// this program.
  LtcProgram other;
  const int64_t *other_values;
} LtcSymbolicProgram;

/// Writes the program for all sizes at stage torch-raw or torch to `module`:
/// sizes that vary are `?`. `checks` receives the sizes of the traced program
/// as expressions (ltcSizesCheck). Needed symbols that no size of a parameter
/// determines become int parameters after the other parameters, in the order of
/// symbols: `parameters` receives 1 for each of these, and 0 for other symbols.
/// Fails if a number isn't a known function of the sizes.
LTC_EXPORT LtcStatus ltcProgramsSymbolicStage(const LtcSymbolicProgram *program,
                                              const LtcStageOptions *options,
                                              LtcBytes *module,
                                              LtcBytes *checks,
                                              int *parameters);

typedef struct {
  const char *name;
  int64_t value;
} LtcSizeValue;

/// Writes the text of a program for all sizes with each symbol replaced by its
/// value. `module` is text or bytecode in the torch dialect. Fails if a symbol
/// has no value, or a value outside its range.
LTC_EXPORT LtcStatus ltcModuleSpecialize(LtcCompiler compiler,
                                         const char *module, size_t size,
                                         const LtcSizeValue *values,
                                         size_t count, LtcBytes *result);

/// Compiles a module that was written elsewhere, as text or bytecode: one
/// function in the torch dialect, in TOSA, or at the linalg stage, with tensor
/// arguments followed by scalar arguments. The ops determine the stage.
LTC_EXPORT LtcStatus ltcModuleCompile(LtcCompiler compiler, const char *module,
                                      size_t size,
                                      const LtcCompileOptions *options,
                                      LtcBytes *executable,
                                      LtcCompileStatistics *statistics);

#ifdef __cplusplus
}
#endif

#endif // TORCH_LTC_C_LOWERING_H
