//===- processor_times.h - Who uses the processors --------------*- C -*-===//
//
// Reads two processor times: that of this process, and that of all processes.
// The functions are inline because the backend needs them before the runtime is
// loaded.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_C_PROCESSOR_TIMES_H
#define TORCH_LTC_C_PROCESSOR_TIMES_H

#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/// Times in seconds since an arbitrary moment in the past, and the number of
/// processors.
typedef struct LtcProcessorTimes {
  double wall;
  double all;     ///< of all processes, on the processors that this one may use
  double own;     ///< of this process
  int processors; ///< number of those processors
} LtcProcessorTimes;

/// Reads the current times. Returns 0 if the system doesn't provide them. On
/// Linux, /proc/stat contains them with a resolution of 10 ms.
static inline int ltcReadProcessorTimes(LtcProcessorTimes *times) {
  cpu_set_t allowed;
  struct rusage usage;
  struct timespec now;
  if (sched_getaffinity(0, sizeof allowed, &allowed) ||
      getrusage(RUSAGE_SELF, &usage) || clock_gettime(CLOCK_MONOTONIC, &now))
    return 0;
  FILE *file = fopen("/proc/stat", "r");
  if (!file)
    return 0;
  double ticks = 0;
  int isSeen = 0;
  char line[512];
  while (fgets(line, sizeof line, file)) {
    unsigned number;
    unsigned long long user, nice, system, idle, ioWait, irq, softIrq, steal;
    // Each processor has a line "cpuN user nice ..."; the first line, "cpu
    // ...", contains the sums.
    if (sscanf(line, "cpu%u %llu %llu %llu %llu %llu %llu %llu %llu", &number,
               &user, &nice, &system, &idle, &ioWait, &irq, &softIrq,
               &steal) != 9 ||
        number >= CPU_SETSIZE || !CPU_ISSET(number, &allowed))
      continue;
    ticks += (double)(user + nice + system + irq + softIrq + steal);
    isSeen = 1;
  }
  fclose(file);
  times->wall = (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
  times->all = ticks / (double)sysconf(_SC_CLK_TCK);
  times->own = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
               (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
  times->processors = CPU_COUNT(&allowed);
  return isSeen;
}

/// Returns how many processors other processes used on average between two
/// samples.
static inline double ltcProcessorsOfOthers(const LtcProcessorTimes *before,
                                           const LtcProcessorTimes *after) {
  return ((after->all - before->all) - (after->own - before->own)) /
         (after->wall - before->wall);
}

#endif // TORCH_LTC_C_PROCESSOR_TIMES_H
