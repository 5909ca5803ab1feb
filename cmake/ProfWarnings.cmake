# SPDX-License-Identifier: Apache-2.0
# prof::warnings: what our own code is compiled with. They are errors only where somebody asks for it, as
# .ci/run does: a compiler newer than ours must not keep a user from building.
option(PROF_WERROR "Warnings are errors" OFF)
add_library(prof_warnings INTERFACE)
add_library(prof::warnings ALIAS prof_warnings)
target_compile_options(prof_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${PROF_WERROR}>>:-Werror>)
# g++ 12 sees an overlapping memcpy in std::string's operator+ where there is none (its bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(prof_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
