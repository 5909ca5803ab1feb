# SPDX-License-Identifier: Apache-2.0
# How this project's targets are made.

# A file with torch headers takes 1 to 2 GB to compile: as many at once as memory allows.
if(PROJECT_IS_TOP_LEVEL)
  include(ProcessorCount)
  ProcessorCount(jobs)
  cmake_host_system_information(RESULT free_mb QUERY AVAILABLE_PHYSICAL_MEMORY)
  math(EXPR memory_jobs "${free_mb} / 1500")
  if(memory_jobs LESS jobs)
    set(jobs ${memory_jobs})
  endif()
  if(jobs LESS 1)
    set(jobs 1)
  endif()
  set_property(GLOBAL APPEND PROPERTY JOB_POOLS prof_jobs=${jobs})  # Ninja's; others take -j
  set(CMAKE_JOB_POOL_COMPILE prof_jobs)
  set(CMAKE_JOB_POOL_LINK prof_jobs)
endif()

# Links `target` with LibTorch and gives it the one precompiled header: torch's headers are parsed
# once per build folder, a file that uses them then takes a fraction of the time. Include headers as
# narrow as these in the sources, not torch/torch.h: all of it would double both. The header counts
# only where a target has the same flags and definitions: a mismatch is an error, not a slow build.
function(prof_use_torch target)
  if(NOT TARGET prof_torch_pch)
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/torch_pch.cpp CONTENT "")
    add_library(prof_torch_pch STATIC ${PROJECT_BINARY_DIR}/torch_pch.cpp)
    target_link_libraries(prof_torch_pch PRIVATE prof::torch prof::fmt prof::warnings)
    target_precompile_headers(prof_torch_pch PRIVATE
      <torch/types.h> <torch/cuda.h> <torch/csrc/autograd/profiler_kineto.h>)
  endif()
  target_link_libraries(${target} PRIVATE prof::torch prof::fmt prof::warnings)
  target_precompile_headers(${target} REUSE_FROM prof_torch_pch)
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Werror=invalid-pch>)
endfunction()

# The chapter chapters/<name>/main.cpp, and further sources beside it, as <build folder>/<name>.
#   prof_add_chapter(03_sdpa backends.cpp)
function(prof_add_chapter name)
  list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/chapters/${name}/)
  add_executable(${name} ${PROJECT_SOURCE_DIR}/chapters/${name}/main.cpp ${ARGN})
  target_link_libraries(${name} PRIVATE prof::chapter)
  prof_use_torch(${name})
endfunction()

# A Catch2 program; each of its TEST_CASEs becomes a test of CTest.
#   prof_add_test(test_tree SOURCES tree_test.cpp LIBRARIES prof::trace [LABEL gpu] [TORCH])
function(prof_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TORCH" "LABEL" "SOURCES;LIBRARIES")
  if(NOT arg_LABEL)
    set(arg_LABEL cpu)
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LIBRARIES} prof::warnings Catch2::Catch2WithMain)
  target_compile_definitions(${name} PRIVATE PROF_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data")
  if(arg_TORCH)
    prof_use_torch(${name})
  endif()
  catch_discover_tests(${name} DISCOVERY_MODE PRE_TEST
    PROPERTIES LABELS ${arg_LABEL} SKIP_RETURN_CODE 4)
endfunction()
