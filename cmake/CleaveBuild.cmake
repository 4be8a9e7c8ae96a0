# How Cleave's libraries and tools are built: one function each for a library, a tool and a unit test.

add_compile_options(-Wall -Wextra -Werror=return-type -Wno-unused-parameter -fno-exceptions -fvisibility-inlines-hidden)
if(CLEAVE_SANITIZE)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize=vptr,function -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()
if(CLEAVE_SANITIZE_THREADS)
  add_compile_options(-fsanitize=thread)
  add_link_options(-fsanitize=thread)
endif()
if(CLEAVE_FUZZ)
  # Counters of every edge, which libFuzzer steers by; the same everywhere, for the precompiled header's sake. Any finding ends the run.
  add_compile_options(-fsanitize=fuzzer-no-link -fno-sanitize-recover=all)
endif()
add_link_options(-fuse-ld=lld)

# For what the runtime's library holds. It throws nothing, but memory that runs out does, through all of it up to the functions for C: so it
# has tables for unwinding.
set(CLEAVE_SMALL -Oz -ffunction-sections -fdata-sections)

# Passes make and erase ops by the hundred thousand. The C library's allocator merges what was erased and scatters what
# comes next; with this one a model of 100,000 nodes takes a quarter less time. Sanitizers bring their own.
set(CLEAVE_ALLOCATOR)
if(NOT CLEAVE_SANITIZE AND NOT CLEAVE_SANITIZE_THREADS AND NOT CLEAVE_FUZZ)
  find_library(CLEAVE_TCMALLOC tcmalloc_minimal REQUIRED)
  set(CLEAVE_ALLOCATOR "${CLEAVE_TCMALLOC}")
endif()

# Goes into every program.
set(CLEAVE_PROGRAM_SOURCES)
if(CLEAVE_SANITIZE OR CLEAVE_SANITIZE_THREADS)
  set(CLEAVE_PROGRAM_SOURCES "${PROJECT_SOURCE_DIR}/cmake/SanitizerOptions.cpp")
endif()

# MLIR and LLVM, as what links them wants them: the shared libraries, or in `CLEAVE_WHOLE` programs nothing but the archives. Loading
# and relocating both libraries takes longer than most of what a test does (31 ms for a program that starts in 9). Two copies of a
# registry would be two worlds of types, so no target may name MLIR, LLVM or one of their archives but through this. UnusedLlvm.cpp
# leaves the targets of x86-64 machines.
option(CLEAVE_STATIC_TOOLS "link MLIR and LLVM into cleave and cleave-opt; OFF where plugins are to be loaded" ON)
set(CLEAVE_ARCHIVES)
if(CLEAVE_STATIC_TOOLS AND CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64" AND NOT CLEAVE_SANITIZE AND NOT CLEAVE_SANITIZE_THREADS)
  get_property(CLEAVE_MLIR_ARCHIVES GLOBAL PROPERTY MLIR_ALL_LIBS)
  foreach(name ${CLEAVE_MLIR_ARCHIVES} ${LLVM_AVAILABLE_LIBS})
    if(TARGET ${name})
      get_target_property(kind ${name} TYPE)
      get_target_property(file ${name} LOCATION)
      if(kind STREQUAL "STATIC_LIBRARY" AND EXISTS "${file}") # Polly is a package of its own.
        list(APPEND CLEAVE_ARCHIVES "${file}")
      endif()
    endif()
  endforeach()
endif()
set(CLEAVE_TOOLS_ARE_WHOLE OFF)
if(CLEAVE_ARCHIVES)
  set(CLEAVE_TOOLS_ARE_WHOLE ON)
endif()
add_library(CleaveLlvm INTERFACE)
add_library(CleaveMlir INTERFACE)
set(CLEAVE_IS_WHOLE "$<BOOL:$<TARGET_PROPERTY:CLEAVE_WHOLE>>")
target_link_libraries(CleaveLlvm INTERFACE "$<IF:${CLEAVE_IS_WHOLE},${CLEAVE_ARCHIVES},LLVM>")
target_link_libraries(CleaveMlir INTERFACE "$<$<NOT:${CLEAVE_IS_WHOLE}>:MLIR>" CleaveLlvm)
set_property(TARGET lldELF PROPERTY INTERFACE_LINK_LIBRARIES lldCommon ZLIB::ZLIB zstd::libzstd_shared CleaveLlvm)
set_property(TARGET lldCommon PROPERTY INTERFACE_LINK_LIBRARIES CleaveLlvm)

# With CLEAVE_UNITY several sources of a target are compiled as one: headers are read and templates instantiated once for all of them, which
# halves the processor time of a clean build, and makes an edit dearer. So names that only a file sees are different within a target, but
# for those that are compiled apart.
set(CLEAVE_COMPILED_APART CleaveProgram CleaveRuntime CleaveProcesses CleaveRunner CleaveSearch
  CleaveEmulationTests CleavePipeTests CleavePlanTests CleaveRuntimeTests CleaveSearchTests CleaveShardingTests)
function(cleave_join_sources name)
  if(CLEAVE_UNITY AND NOT name IN_LIST CLEAVE_COMPILED_APART)
    # The macro is one that LLVM has each file define for itself.
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 12 UNITY_BUILD_CODE_AFTER_INCLUDE "#undef DEBUG_TYPE")
  endif()
endfunction()

# Precompiled headers, each owned by one library and used by all that stand above it: LLVM's, of libraries that see no MLIR (a third
# of the 1.4 s that a file takes without); MLIR's, those and the dialects of Cleave (2 of 4 s), those and the dialects of kernels
# (4 s more). GoogleTest's is owned by CleaveTestHeaders (test/Unit).
function(cleave_precompile name)
  if(name STREQUAL "CleaveSpmdIR")
    target_precompile_headers(${name} PRIVATE "${PROJECT_SOURCE_DIR}/include/cleave/Support/PrecompiledMlir.h")
  elseif(name STREQUAL "CleaveNnIR")
    target_precompile_headers(${name} PRIVATE "${PROJECT_SOURCE_DIR}/include/cleave/Dialect/Nn/IR/PrecompiledNn.h")
  elseif(name STREQUAL "CleaveCodegen")
    target_precompile_headers(${name} PRIVATE "${PROJECT_SOURCE_DIR}/lib/Codegen/PrecompiledKernels.h")
  elseif(name MATCHES "^CleaveSpmd")
    target_precompile_headers(${name} REUSE_FROM CleaveSpmdIR)
  elseif(name MATCHES "^CleaveCodegenTests$|^CleaveEmulationTests$|^CleaveKernelRunners$|^cleave-kernels$")
    target_precompile_headers(${name} REUSE_FROM CleaveCodegen)
  else()
    target_precompile_headers(${name} REUSE_FROM CleaveNnIR)
  endif()
  add_dependencies(${name} CleaveDialectHeaders)
endfunction()

# cleave_add_library(NAME sources... [NO_MLIR | NO_LLVM] [LINK libraries...]): NO_LLVM has nothing but the standard library
function(cleave_add_library name)
  cmake_parse_arguments(ARG "NO_MLIR;NO_LLVM" "" "LINK;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  cleave_join_sources(${name})
  set_property(GLOBAL APPEND PROPERTY CLEAVE_LIBRARIES ${name})
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
  if(ARG_NO_MLIR)
    target_link_libraries(${name} PUBLIC CleaveLlvm)
    if(name STREQUAL "CleaveSupport")
      target_precompile_headers(${name} PRIVATE "${PROJECT_SOURCE_DIR}/include/cleave/Support/PrecompiledLlvm.h")
    else()
      target_precompile_headers(${name} REUSE_FROM CleaveSupport)
    endif()
  elseif(NOT ARG_NO_LLVM)
    target_link_libraries(${name} PUBLIC CleaveMlir)
    cleave_precompile(${name})
  endif()
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()

# cleave_add_tool(NAME sources... LINK libraries...): a program under bin. Installed, it finds LLVM's libraries where they were
# found when it was configured.
function(cleave_add_tool name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS} ${CLEAVE_PROGRAM_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} CleaveMlir ${CLEAVE_ALLOCATOR})
  cleave_precompile(${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin"
    INSTALL_RPATH "${LLVM_LIBRARY_DIR}")
endfunction()

# cleave_link_whole(NAME): the program has MLIR and LLVM inside.
function(cleave_link_whole name)
  if(CLEAVE_TOOLS_ARE_WHOLE)
    set_target_properties(${name} PROPERTIES CLEAVE_WHOLE ON)
    target_sources(${name} PRIVATE "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/UnusedLlvm.cpp")
    target_link_options(${name} PRIVATE -Wl,--gc-sections -Wl,--strip-debug)
    target_compile_definitions(${name} PRIVATE CLEAVE_WHOLE)
  endif()
endfunction()

# cleave_compile_fast(NAME): a test's own code, which runs for moments, is not optimized: that takes longer than all else of a file.
function(cleave_compile_fast name)
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O0>)
endfunction()

# cleave_add_unit_test(NAME sources... [NO_LLVM | HAS_MLIR] [OPTIMIZED sources...] LINK libraries...): a GoogleTest program under
# bin/unit, run by scripts/check. What is OPTIMIZED, where tests are not, takes long to run; it is linked first, since of two copies
# of an inline function the first one counts.
function(cleave_add_unit_test name)
  cmake_parse_arguments(ARG "NO_LLVM;HAS_MLIR" "" "LINK;OPTIMIZED" ${ARGN})
  add_executable(${name} ${ARG_OPTIMIZED} ${ARG_UNPARSED_ARGUMENTS} ${CLEAVE_PROGRAM_SOURCES})
  cleave_join_sources(${name})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gtest_main)
  if(ARG_OPTIMIZED)
    set_source_files_properties(${ARG_OPTIMIZED} PROPERTIES COMPILE_OPTIONS $<$<CONFIG:Release>:-O3> SKIP_PRECOMPILE_HEADERS ON)
  endif()
  if(ARG_HAS_MLIR)
    cleave_precompile(${name})
  else()
    target_precompile_headers(${name} REUSE_FROM CleaveTestHeaders)
    cleave_compile_fast(${name})
  endif()
  if(NOT ARG_HAS_MLIR AND NOT ARG_NO_LLVM)
    add_dependencies(${name} CleaveDialectHeaders)
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin/unit")
  set_property(GLOBAL APPEND PROPERTY CLEAVE_UNIT_TESTS ${name})
endfunction()
