# SPDX-License-Identifier: Apache-2.0
# Everything that is not ours, each from its system package where there is one, else built from a
# pinned commit. Versions: what Debian 12 has must do (simdjson 3.0, CLI11 2.1, fmt 9, zlib 1.2).
include(FetchContent)

# prof_dependency(<name> <repository> <commit> [version and components of find_package...])
function(prof_dependency name repository commit)
  FetchContent_Declare(${name} GIT_REPOSITORY https://github.com/${repository} GIT_TAG ${commit}
    SYSTEM FIND_PACKAGE_ARGS ${ARGN})
  FetchContent_MakeAvailable(${name})
  string(TOLOWER ${name} lower)
  set(${lower}_SOURCE_DIR "${${lower}_SOURCE_DIR}" PARENT_SCOPE)  # set where it was fetched
  set(${lower}_BINARY_DIR "${${lower}_BINARY_DIR}" PARENT_SCOPE)
  set(CMAKE_MODULE_PATH "${CMAKE_MODULE_PATH}" PARENT_SCOPE)      # Catch2's Catch.cmake
endfunction()

prof_dependency(simdjson simdjson/simdjson cdeb069ad1e8cb2fb479cbb22695cb666cea99ac)  # v4.6.7
prof_dependency(CLI11 CLIUtils/CLI11 6c7b07a878ad834957b98d0f9ce1dbe0cb204fc9)        # v2.4.2

set(ZLIB_BUILD_EXAMPLES OFF)
prof_dependency(ZLIB madler/zlib 51b7f2abdade71cd9bb0e7a373ef2610ec6f9daf)            # v1.3.1
if(NOT TARGET ZLIB::ZLIB)  # zlib's own CMake file makes neither this name nor include folders
  target_include_directories(zlibstatic SYSTEM INTERFACE "${zlib_SOURCE_DIR}" "${zlib_BINARY_DIR}")
  add_library(ZLIB::ZLIB ALIAS zlibstatic)
endif()

if(PROF_TESTS)
  prof_dependency(Catch2 catchorg/Catch2 fa43b77429ba76c462b1898d6cd2f2d7a9416b14 3)  # v3.7.1
  if(catch2_SOURCE_DIR)
    list(APPEND CMAKE_MODULE_PATH "${catch2_SOURCE_DIR}/extras")
  endif()
  include(Catch)
endif()

if(PROF_BENCH)
  set(BENCHMARK_ENABLE_TESTING OFF)
  prof_dependency(benchmark google/benchmark c58e6d0710581e3a08d65c349664128a8d9a2461)  # v1.9.1
endif()

if(PROF_LIBTORCH)
  include(ProfLibTorch)
endif()

# prof::fmt. With LibTorch it must be LibTorch's own copy, header-only: another version beside it
# would be two definitions of the same names. Without LibTorch the library, which is compiled once. Only the folder fmt/ is linked into the include path,
# so the targets that must not know torch cannot include its headers.
add_library(prof_fmt INTERFACE)
add_library(prof::fmt ALIAS prof_fmt)
if(PROF_LIBTORCH AND EXISTS "${PROF_TORCH_ROOT}/include/fmt/format.h")
  file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/fmt")
  file(CREATE_LINK "${PROF_TORCH_ROOT}/include/fmt" "${PROJECT_BINARY_DIR}/fmt/fmt" SYMBOLIC)
  target_include_directories(prof_fmt SYSTEM INTERFACE "${PROJECT_BINARY_DIR}/fmt")
  target_compile_definitions(prof_fmt INTERFACE FMT_HEADER_ONLY=1)
else()
  prof_dependency(fmt fmtlib/fmt 407c905e45ad75fc29bf0f9bb7c5c2fd3475976f)             # v12.1.0
  target_link_libraries(prof_fmt INTERFACE fmt::fmt)
endif()
