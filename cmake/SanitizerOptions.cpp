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
const char *__tsan_default_suppressions();
}

const char *__asan_default_options() { return "allow_user_poisoning=0:exitcode=77:handle_sigbus=0"; }
const char *__ubsan_default_options() { return "halt_on_error=1:print_stacktrace=1:exitcode=77"; }
// After a failure of a rank a process ends at once, whatever its threads do.
const char *__tsan_default_options() { return "halt_on_error=1:exitcode=77:report_thread_leaks=0"; }
// Open MPI takes locks of its own in both orders while it starts and ends; it is compiled without the sanitizer, too.
const char *__tsan_default_suppressions() {
  return "deadlock:mca_btl_tcp\nrace:mca_\nrace:libmpi.so\nrace:libopen-pal.so\nrace:libopen-rte.so\n"
         "race:libevent\nrace:libpmix\nthread:libopen-pal.so\nthread:mca_\n";
}
