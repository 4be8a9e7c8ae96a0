/* Kernels.c - kernels of test programs, compiled by the host's compiler.
 *
 * Each is called as compiled kernels are: with the addresses of its operands, then those of its integers. */
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

/* y = 2 x + k, of n elements. */
void test_affine(void **a) {
  const float *x = a[0];
  float *y = a[1];
  int64_t n = *(const int64_t *)a[2], k = *(const int64_t *)a[3];
  for (int64_t i = 0; i < n; ++i)
    y[i] = 2 * x[i] + (float)k;
}

/* z = x + y, of n elements. */
void test_add(void **a) {
  const float *x = a[0], *y = a[1];
  float *z = a[2];
  for (int64_t i = 0, n = *(const int64_t *)a[3]; i < n; ++i)
    z[i] = x[i] + y[i];
}

/* state += x, of n elements; y is what comes of it. */
void test_accumulate(void **a) {
  const float *x = a[0];
  float *state = a[1], *y = a[2];
  for (int64_t i = 0, n = *(const int64_t *)a[3]; i < n; ++i)
    y[i] = state[i] += x[i];
}

/* y[m, n] = x[m, k] times w, whose columns are in panels of 16: w[n / 16, k, 16]. */
void test_matmul(void **a) {
  const float *x = a[0], *w = a[1];
  float *y = a[2];
  int64_t m = *(const int64_t *)a[3], k = *(const int64_t *)a[4], n = *(const int64_t *)a[5];
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t l = 0; l < k; ++l)
        sum += x[i * k + l] * w[(j / 16 * k + l) * 16 + j % 16];
      y[i * n + j] = sum;
    }
}

/* y[0] = the address of x. */
void test_address(void **a) { *(int64_t *)a[1] = (int64_t)(intptr_t)a[0]; }

/* y = x[i], of 4 indices into 3 places; those that are out of range it reports, as compiled kernels do, and takes the first place. */
void test_look_up(void **a) {
  const int64_t *i = a[0];
  const float *x = a[1];
  float *y = a[2];
  int64_t *report = a[3];
  for (int64_t n = 0; n < 4; ++n) {
    int64_t at = i[n] < 0 ? i[n] + 3 : i[n];
    if (at < 0 || at >= 3) {
      report[0] = i[n];
      report[1] = 3 + 1;
      at = 0;
    }
    y[n] = x[at];
  }
}

/* y[0] = how often it was called, of this copy of the code. */
void test_count(void **a) {
  static float calls = 0;
  *(float *)a[0] = ++calls;
}

/* y[0] = 1, or NaN where the integer is 0 or more. */
void test_nan(void **a) { *(float *)a[0] = *(const int64_t *)a[1] < 0 ? 1 : __builtin_nanf(""); }

/* Waits for as many milliseconds, if any. */
void test_sleep(void **a) {
  int64_t milliseconds = *(const int64_t *)a[1];
  struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
  *(float *)a[0] = 1;
  if (milliseconds > 0)
    nanosleep(&time, 0);
}

/* Never comes back where the integer is 0 or more. */
void test_endless(void **a) {
  volatile int64_t which = *(const int64_t *)a[1];
  *(float *)a[0] = 1;
  while (which >= 0)
    ;
}

static int64_t descend(volatile int64_t depth) {
  volatile char room[4096];
  room[0] = (char)depth;
  return depth < 0 ? 0 : descend(depth + 1) + room[0];
}

/* As the integer says: a null pointer, a division by zero, an instruction that is none; a stack that
 * has no end; negative: nothing. */
void test_crash(void **a) {
  volatile int64_t which = *(const int64_t *)a[1];
  volatile int32_t zero = 0, one = 1;
  *(float *)a[0] = 1;
  if (which == 0)
    *(volatile float *)(uintptr_t)(which + 16) = 1;
  if (which == 1)
    *(float *)a[0] = (float)(one / zero);
  if (which == 2)
    __builtin_trap();
  if (which == 3)
    *(float *)a[0] = (float)descend(0);
  if (which == 4)
    abort();
}
