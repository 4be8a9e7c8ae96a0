/* run.c - runs a compiled model from C.
 *
 *   run PROGRAM.cleave
 *
 * Hands the model ones (or their like in other types) for each of its inputs, runs it, and prints of each output the shape
 * and the first element. Everything that can go wrong is one line on standard error.
 *
 *   cc run.c -lcleave_runtime
 */
#include <cleave/runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Elements that are 1 in each type, one behind the other. Null where memory is out. */
static void *make_ones(const cleave_tensor *tensor) {
  char *data = calloc(tensor->bytes ? tensor->bytes : 1, 1);
  size_t count = 1;
  for (size_t dim = 0; dim < tensor->rank; ++dim)
    count *= (size_t)tensor->shape[dim];
  for (size_t i = 0; data && i < count; ++i) {
    size_t size = tensor->bytes / count;
    char *element = data + i * size;
    if (tensor->type == CLEAVE_F32)
      memcpy(element, &(float){1}, size);
    else if (tensor->type == CLEAVE_F64)
      memcpy(element, &(double){1}, size);
    else if (tensor->type == CLEAVE_F16)
      memcpy(element, &(uint16_t){0x3c00}, size);
    else if (tensor->type == CLEAVE_BF16)
      memcpy(element, &(uint16_t){0x3f80}, size);
    else
      element[0] = 1; /* integers, little-endian */
  }
  return data;
}

static int report(const char *what) {
  fprintf(stderr, "%s: %s\n", what, cleave_last_error());
  return 1;
}

static void print(const cleave_tensor *tensor) {
  printf("%s [", tensor->name);
  for (size_t dim = 0; dim < tensor->rank; ++dim)
    printf(dim ? ", %lld" : "%lld", (long long)tensor->shape[dim]);
  printf("]");
  if (tensor->type == CLEAVE_F32 && tensor->bytes > 0)
    printf(" begins with %g", (double)*(const float *)tensor->data);
  printf("\n");
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: run PROGRAM.cleave\n");
    return 2;
  }
  cleave_program *program;
  if (cleave_open(argv[1], NULL, &program) != CLEAVE_OK)
    return report("cannot open");
  printf("%s: %u ranks\n", cleave_version(), cleave_rank_count(program));

  size_t input_count = cleave_input_count(program), output_count = cleave_output_count(program);
  cleave_tensor *inputs = calloc(input_count + 1, sizeof(*inputs));
  cleave_tensor *outputs = calloc(output_count + 1, sizeof(*outputs));
  int code = inputs && outputs ? 0 : 1;
  for (size_t i = 0; !code && i < input_count; ++i) {
    cleave_describe_input(program, 0, i, &inputs[i]);
    inputs[i].data = make_ones(&inputs[i]);
    code = inputs[i].data ? 0 : 1;
  }
  for (size_t i = 0; !code && i < output_count; ++i)
    cleave_describe_output(program, 0, i, &outputs[i]);

  if (!code && cleave_run(program, inputs, input_count, outputs, output_count) != CLEAVE_OK)
    code = report("cannot run");
  for (size_t i = 0; !code && i < output_count; ++i)
    print(&outputs[i]);

  for (size_t i = 0; inputs && i < input_count; ++i)
    free((void *)inputs[i].data);
  free(inputs);
  free(outputs);
  cleave_close(program);
  return code;
}
