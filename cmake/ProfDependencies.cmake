# SPDX-License-Identifier: Apache-2.0
# Where each dependency comes from (design: system package first, else a pinned commit).
find_package(ZLIB REQUIRED)
find_package(simdjson REQUIRED)
find_package(CLI11 REQUIRED)
if(PROF_TESTS)
  find_package(Catch2 3 REQUIRED)
endif()
find_package(fmt REQUIRED)
add_library(prof_fmt INTERFACE)
add_library(prof::fmt ALIAS prof_fmt)
target_link_libraries(prof_fmt INTERFACE fmt::fmt-header-only)
