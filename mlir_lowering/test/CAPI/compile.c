// RUN: ltc-capi-compile-test 2>&1 | FileCheck %s

#include "torch_ltc-c/lowering.h"
#include "torch_ltc-c/runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(LtcStatus status) {
  if (!status)
    return;
  printf("unexpected: %s\n", ltcStatusMessage(status));
  exit(1);
}

static void printError(LtcStatus status) {
  printf("error: %s\n", status ? ltcStatusMessage(status) : "none");
  ltcStatusDestroy(status);
}

static const int64_t kSizes[] = {2, 3};
static const LtcTensorType kMatrix = {LTC_DTYPE_FLOAT32, 2, kSizes};

// A program that computes weight - rate * softmax(weight), with weight donated.
static LtcProgram makeStep(LtcCompiler compiler) {
  LtcProgram program;
  check(ltcProgramCreate(compiler, "step", &program));
  LtcValue weight = ltcProgramAddTensorParameter(program, kMatrix, "weight", 1);
  LtcValue rate = ltcProgramAddFloatParameter(program);
  LtcValue softmaxOperands[] = {weight, ltcProgramConstantInt(program, -1),
                                ltcProgramConstantBool(program, 0)};
  LtcValue softmax, scaled, result;
  LtcLocation here = {"train.py", 12, "encoder.0", 0};
  check(ltcProgramAppend(program, "aten._softmax", softmaxOperands, 3,
                         &kMatrix, 1, &here, &softmax));
  LtcValue mulOperands[] = {softmax, rate};
  check(ltcProgramAppend(program, "aten.mul.Scalar", mulOperands, 2, &kMatrix,
                         1, &here, &scaled));
  LtcValue subOperands[] = {weight, scaled, ltcProgramConstantInt(program, 1)};
  check(ltcProgramAppend(program, "aten.sub.Tensor", subOperands, 3, &kMatrix,
                         1, &here, &result));
  check(ltcProgramSetOutputs(program, &result, NULL, 1));
  return program;
}

static void printStage(const char *stage, const char *text, size_t size,
                       void *user_data) {
  (void)user_data;
  printf("stage %s: %s\n", stage, strlen(text) == size ? "complete" : "cut");
}

static void runStep(LtcBytes bytes) {
  LtcExecutable executable;
  check(ltcExecutableLoad(bytes.data, bytes.size, &executable));
  LtcOutputInfo output = ltcExecutableOutput(executable, 0);
  printf("weight is %s, rank %zu\n",
         ltcExecutableParameter(executable, 0).name, output.type.rank);
  float weight[6] = {0, 0, 0, 1, 1, 1}, fresh[6] = {0};
  void *parameters[] = {weight}, *outputs[] = {fresh};
  LtcScalar rate = {.as_float = 0.3};
  LtcRunArguments arguments = {parameters, &rate, outputs, 1, NULL};
  check(ltcExecutableRun(executable, &arguments));
  float *result = output.place == LTC_OUTPUT_DONATED ? weight : fresh;
  printf("result %.3f %.3f\n", result[0], result[5]);
  ltcExecutableDestroy(executable);
}

static void compileStep(LtcCompiler compiler) {
  LtcProgram program = makeStep(compiler);
  LtcBytes text;
  LtcStageOptions torch = {.stage = "torch", .print_locations = 1};
  check(ltcProgramStage(program, &torch, &text));
  printf("%s", text.data);
  ltcBytesDestroy(text);
  LtcStageOptions linalg = {.stage = "linalg"};
  check(ltcProgramStage(program, &linalg, &text));
  printf("linalg has %s\n", strstr(text.data, "linalg.generic") ? "linalg" : "no linalg");
  ltcBytesDestroy(text);

  LtcCompileOptions options = {printStage, NULL, 1, 0};
  LtcBytes executable;
  LtcCompileStatistics statistics;
  check(ltcProgramCompile(program, &options, &executable, &statistics));
  printf("counts %d %d\n", statistics.ops > 5, statistics.kernels > 0);
  printError(ltcProgramCompile(program, NULL, &executable, NULL));
  ltcProgramDestroy(program);
  runStep(executable);
  ltcBytesDestroy(executable);
}

static void compileForeignOp(LtcCompiler compiler) {
  LtcProgram program;
  check(ltcProgramCreate(compiler, "foreign", &program));
  LtcBytes executable;
  printError(ltcProgramCompile(program, NULL, &executable, NULL));
  LtcValue input = ltcProgramAddTensorParameter(program, kMatrix, NULL, 0);
  LtcLocation here = {"train.py", 14, NULL, 0};
  LtcValue result;
  check(ltcProgramAppend(program, "mylib.scale", &input, 1, &kMatrix, 1, &here,
                         &result));
  check(ltcProgramSetOutputs(program, &result, NULL, 1));
  printError(ltcProgramCompile(program, NULL, &executable, NULL));
  ltcProgramDestroy(program);
}

// With `threads` threads, compiles a program that computes the softmaxes of
// matrices of different sizes.
static LtcBytes compileMany(LtcCompiler compiler, int threads, size_t *kernels) {
  enum { kCount = 6 };
  LtcProgram program;
  check(ltcProgramCreate(compiler, "many", &program));
  LtcValue results[kCount];
  for (int64_t i = 0; i < kCount; ++i) {
    int64_t sizes[] = {i + 2, 40};
    LtcTensorType type = {LTC_DTYPE_FLOAT32, 2, sizes};
    LtcValue operands[] = {
        ltcProgramAddTensorParameter(program, type, NULL, 0),
        ltcProgramConstantInt(program, i % 2), ltcProgramConstantBool(program, 0)};
    LtcLocation here = {"train.py", (int)i, NULL, 0};
    check(ltcProgramAppend(program, "aten._softmax", operands, 3, &type, 1, &here,
                           &results[i]));
  }
  check(ltcProgramSetOutputs(program, results, NULL, kCount));
  LtcCompileOptions options = {.threads = threads};
  LtcCompileStatistics statistics;
  LtcBytes executable;
  check(ltcProgramCompile(program, &options, &executable, &statistics));
  *kernels = statistics.kernels_compiled;
  ltcProgramDestroy(program);
  return executable;
}

static void compileWithThreads(LtcCompiler compiler) {
  size_t kernels, same;
  LtcBytes one = compileMany(compiler, 1, &kernels);
  LtcBytes three = compileMany(compiler, 3, &same);
  printf("threads: %d kernels or more, %s\n", kernels >= 4 && kernels == same ? 4 : 0,
         one.size == three.size && !memcmp(one.data, three.data, one.size)
             ? "equal executables"
             : "different executables");
  ltcBytesDestroy(one);
  ltcBytesDestroy(three);
}

// Compiles and runs programs that were made before and after the compiler
// released its memory.
static void releaseMemory(LtcCompiler compiler) {
  LtcProgram before = makeStep(compiler);
  ltcCompilerReleaseMemory(compiler);
  ltcCompilerReleaseMemory(compiler);
  LtcProgram after = makeStep(compiler);
  LtcProgram programs[] = {after, before};
  for (int i = 0; i < 2; ++i) {
    LtcBytes executable;
    check(ltcProgramCompile(programs[i], NULL, &executable, NULL));
    ltcProgramDestroy(programs[i]);
    runStep(executable);
    ltcBytesDestroy(executable);
  }
}

int main(void) {
  LtcCompiler compiler;
  check(ltcCompilerCreate(&compiler));
  compileStep(compiler);
  compileForeignOp(compiler);
  compileWithThreads(compiler);
  releaseMemory(compiler);
  ltcCompilerDestroy(compiler);
  return 0;
}

// CHECK: func.func @step(
// CHECK: torch.aten.exp
// CHECK: loc("encoder.0"
// CHECK: linalg has linalg
// CHECK: stage torch: complete
// CHECK: stage linalg: complete
// CHECK: stage kernels: complete
// CHECK: stage llvm: complete
// CHECK: counts 1 1
// CHECK: error: the program was already compiled
// CHECK: weight is weight, rank 2
// CHECK: result -0.100 0.900
// CHECK: error: the program has no outputs yet
// CHECK: error: backend contract, rule BC4: 'torch.mylib.scale' (train.py:14): the target cannot lower this op
// CHECK: threads: 4 kernels or more, equal executables
// CHECK: result -0.100 0.900
// CHECK: result -0.100 0.900
