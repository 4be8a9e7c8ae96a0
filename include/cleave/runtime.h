/*===- runtime.h - runs programs that Cleave compiled ------------*- C -*-===*\
|*                                                                          *|
|* A program file holds a model, compiled for a number of ranks. Opening it *|
|* gives each rank its memory and its weights; running it takes inputs by   *|
|* name, lets all ranks run, and gives outputs:                             *|
|*                                                                          *|
|*   cleave_program *program;                                               *|
|*   if (cleave_open("m.cleave", NULL, &program) != CLEAVE_OK)              *|
|*     fprintf(stderr, "%s\n", cleave_last_error());                        *|
|*                                                                          *|
|* examples/run.c is a whole program. Nothing is thrown, nothing printed.   *|
|* A program may be used by one thread at a time (the call of another one   *|
|* is an error), different programs by different ones. docs/embedding.md    *|
|* says more.                                                               *|
|*                                                                          *|
\*===----------------------------------------------------------------------===*/
#ifndef CLEAVE_RUNTIME_H
#define CLEAVE_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define CLEAVE_NOEXCEPT noexcept
extern "C" {
#else
#define CLEAVE_NOEXCEPT
#endif

#if defined(__GNUC__)
#define CLEAVE_API __attribute__((visibility("default")))
#else
#define CLEAVE_API
#endif

/* What came of a call. Numbers stay what they are. */
typedef enum cleave_status {
  CLEAVE_OK = 0,
  CLEAVE_ERROR_PROGRAM = 1,   /* the file cannot be read, or is no sound program */
  CLEAVE_ERROR_MACHINE = 2,   /* made for another machine, or another number of ranks */
  CLEAVE_ERROR_WEIGHTS = 3,   /* missing, or not those that it was compiled with */
  CLEAVE_ERROR_MEMORY = 4,    /* too little of it */
  CLEAVE_ERROR_ARGUMENTS = 5, /* names, types or shapes of tensors; a null pointer */
  CLEAVE_ERROR_RANKS = 6,     /* a rank failed while it ran: the program cannot be run any more */
  CLEAVE_ERROR_IN_USE = 7     /* another thread is in a call with this program */
} cleave_status;

/* Element types. Numbers stay what they are. */
typedef int32_t cleave_type;
enum {
  CLEAVE_F16 = 0,
  CLEAVE_BF16 = 1,
  CLEAVE_F32 = 2,
  CLEAVE_F64 = 3,
  CLEAVE_I1 = 4, /* a byte, 0 or 1 */
  CLEAVE_I8 = 5,
  CLEAVE_I16 = 6,
  CLEAVE_I32 = 7,
  CLEAVE_I64 = 8,
  CLEAVE_UI8 = 9,
  CLEAVE_UI16 = 10,
  CLEAVE_UI32 = 11,
  CLEAVE_UI64 = 12
};

/* A tensor: elements in row-major order. */
typedef struct cleave_tensor {
  const char *name;
  cleave_type type;
  size_t rank; /* how many dims */
  const int64_t *shape;
  const void *data;
  size_t bytes; /* of data */
} cleave_tensor;

/* Which ranks this process runs. */
typedef enum cleave_ranks {
  CLEAVE_RANKS_THREADS = 0, /* all, as threads */
  CLEAVE_RANKS_MPI = 1,     /* one: that which mpirun, or srun --mpi=pmix, started (libcleave_mpi) */
  CLEAVE_RANKS_TCP = 2      /* one, without MPI: that which torchrun or srun started (libcleave_tcp) */
} cleave_ranks;

typedef struct cleave_options {
  const char *weights_folder; /* where files of weights lie; null: beside the program */
  const char *record_folder;  /* gets flight-recorder.txt when a rank fails; null: none */
  double deadline_seconds;    /* how long ranks wait for each other; 0: 60 */
  double silence_seconds;     /* how long a rank may give no sign of life; 0: as cleave-run */
  uint64_t memory_limit;      /* bytes that ranks of this process may have; 0: what is free */
  cleave_ranks ranks;         /* which ranks this process runs */
  int pin_threads;            /* each rank on a core of its own, where there are enough */
  int catch_crashes;          /* a kernel that crashes is an error, not the end of the process */
  int no_verify;              /* takes a program and weights that have changed since their digests were made */
} cleave_options;

typedef struct cleave_program cleave_program;

/* What is asked for by default. */
CLEAVE_API void cleave_options_init(cleave_options *options) CLEAVE_NOEXCEPT;

/* Opens a program file. Options may be null. On success *program is to be closed. */
CLEAVE_API cleave_status cleave_open(const char *path, const cleave_options *options,
                                     cleave_program **program) CLEAVE_NOEXCEPT;
/* A program in memory, which may be gone afterwards; relative paths of weights are looked up in `folder` (may be null). */
CLEAVE_API cleave_status cleave_open_memory(const void *data, size_t bytes, const char *folder,
                                            const cleave_options *options, cleave_program **program) CLEAVE_NOEXCEPT;
/* Closes a program, and frees all that it handed out; where a thread is in a call with it, when that ends. Null is nothing, and so is
 * a program that is closed already: other calls with one are CLEAVE_ERROR_ARGUMENTS, or give 0. */
CLEAVE_API void cleave_close(cleave_program *program) CLEAVE_NOEXCEPT;

/* Runs a program. Inputs are found by name, in any order; inputs that are states may be left out. Of each output only `name` is
 * read; the rest is filled in, and stays until the next run. Under MPI rank 0 gets outputs, others get null data. */
CLEAVE_API cleave_status cleave_run(cleave_program *program, const cleave_tensor *inputs, size_t input_count,
                                    cleave_tensor *outputs, size_t output_count) CLEAVE_NOEXCEPT;
/* The same of one function of several by its name, such as `eval` of a step of training, which runs on the same states. NULL, or an empty name:
 * the first, which cleave_run runs. */
CLEAVE_API cleave_status cleave_run_entry(cleave_program *program, const char *entry, const cleave_tensor *inputs,
                                          size_t input_count, cleave_tensor *outputs,
                                          size_t output_count) CLEAVE_NOEXCEPT;
/* From any thread: fails all ranks, so that a thread that runs the program comes back, with CLEAVE_ERROR_RANKS. The program only repeats
 * that failure from then on; `why` (may be null) is in its message. A program that is closed is nothing. */
CLEAVE_API void cleave_stop(cleave_program *program, const char *why) CLEAVE_NOEXCEPT;
/* Sets all states to what they were before the first run: zeros, or weights, which are read again. */
CLEAVE_API cleave_status cleave_reset_states(cleave_program *program) CLEAVE_NOEXCEPT;
/* Writes all states into one safetensors file, whatever ranks hold of them; it appears whole or not at all. Reads them from one, written
 * by a program with as many ranks or others; with only_parameters weights and statistics alone, all else is as before the first run.
 * Under MPI all ranks call it, and see one disk. */
CLEAVE_API cleave_status cleave_save(cleave_program *program, const char *path) CLEAVE_NOEXCEPT;
CLEAVE_API cleave_status cleave_load(cleave_program *program, const char *path, int only_parameters) CLEAVE_NOEXCEPT;

/* What went wrong in this thread's last call that failed: one line, until its next call. */
CLEAVE_API const char *cleave_last_error(void) CLEAVE_NOEXCEPT;

/* What a program takes and gives. A variant is a set of shapes; all have the same tensors, but for those of another function, which may
 * have fewer outputs. Index beyond the last: CLEAVE_ERROR_ARGUMENTS. `data` is null. */
CLEAVE_API size_t cleave_variant_count(const cleave_program *program) CLEAVE_NOEXCEPT;
CLEAVE_API size_t cleave_input_count(const cleave_program *program) CLEAVE_NOEXCEPT;
CLEAVE_API size_t cleave_output_count(const cleave_program *program) CLEAVE_NOEXCEPT;
CLEAVE_API cleave_status cleave_describe_input(const cleave_program *program, size_t variant, size_t index,
                                               cleave_tensor *tensor) CLEAVE_NOEXCEPT;
CLEAVE_API cleave_status cleave_describe_output(const cleave_program *program, size_t variant, size_t index,
                                                cleave_tensor *tensor) CLEAVE_NOEXCEPT;
/* States, by the inputs that they are: what a run may be given, and finds as the run before has left it. */
CLEAVE_API size_t cleave_state_count(const cleave_program *program) CLEAVE_NOEXCEPT;
CLEAVE_API cleave_status cleave_describe_state(const cleave_program *program, size_t index,
                                               cleave_tensor *tensor) CLEAVE_NOEXCEPT;

/* The output that is the next value of a state, which a run keeps and hands out where it is named; null: the state stays as it is, or there
 * is none of that index. */
CLEAVE_API const char *cleave_state_output(const cleave_program *program, size_t index) CLEAVE_NOEXCEPT;

/* Ranks of the program, and which one this process is (0 where they are threads). */
CLEAVE_API uint32_t cleave_rank_count(const cleave_program *program) CLEAVE_NOEXCEPT;
CLEAVE_API uint32_t cleave_rank(const cleave_program *program) CLEAVE_NOEXCEPT;
/* Seconds of opening, and of the last run; bytes of the rank that has most. */
CLEAVE_API double cleave_load_seconds(const cleave_program *program) CLEAVE_NOEXCEPT;
CLEAVE_API double cleave_run_seconds(const cleave_program *program) CLEAVE_NOEXCEPT;
CLEAVE_API uint64_t cleave_peak_bytes(const cleave_program *program) CLEAVE_NOEXCEPT;

/* `0.1.0` */
CLEAVE_API const char *cleave_version(void) CLEAVE_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* CLEAVE_RUNTIME_H */
