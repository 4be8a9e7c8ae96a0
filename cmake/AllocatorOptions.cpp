//===- AllocatorOptions.cpp - how memory is taken from the system ---------===//
//
// A module of 100,000 ops is walked some thirty times, over 300 MB: on pages of 4 kB an eighth of the time goes into
// their faults and the misses of their table.
//
//===----------------------------------------------------------------------===//

extern "C" {
// Read by jemalloc as it starts (its manual, TUNING).
extern const char *malloc_conf;
}

const char *malloc_conf = "thp:always,metadata_thp:always";
