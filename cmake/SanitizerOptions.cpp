//===- SanitizerOptions.cpp - how the sanitizers report -------------------===//
//
// A finding ends the program with a code of its own, so that no test takes it for a refusal of bad input.
//
// LLVM's arena allocators are inline, and poison what they have not given out yet where they are compiled with the
// sanitizer. The packaged LLVM and MLIR libraries are compiled without: what they take from an arena of ours would stay
// poisoned, and every use of it would look like a mistake.
//
//===----------------------------------------------------------------------===//

extern "C" {
const char *__asan_default_options();
const char *__ubsan_default_options();
const char *__tsan_default_options();
}

const char *__asan_default_options() { return "allow_user_poisoning=0:exitcode=77"; }
const char *__ubsan_default_options() { return "halt_on_error=1:print_stacktrace=1:exitcode=77"; }
const char *__tsan_default_options() { return "halt_on_error=1:exitcode=77"; }
